"""Put mistakes into the book's code, and count which the checks notice.

make.py makes them; forks.py tries each in a process of its own, which runs
the chapter cell by cell and judges it as judge.py does; keep.py keeps the
verdicts, and report.py says what they come to.
"""
