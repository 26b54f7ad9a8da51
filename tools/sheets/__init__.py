"""What teachers make of a chapter: sheets, and one framework alone."""
