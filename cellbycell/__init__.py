"""The code of *Transformers, Cell by Cell*, and checks for your own model.

    from cellbycell.pytorch import Transformer
    from cellbycell.tensorflow import TransformerTF
    from cellbycell.checks import check_model

Importing PyTorch's part never imports TensorFlow, nor the other way round.
"""

__version__ = "2026.1"
