"""The similarity of positions: its tensorflow part, for what comes after it.

Built and explained in the chapter *The similarity of positions* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf

from cellbycell.common.position_similarity import frequencies


def rotation_matrix_tf(offset, d_model, base=10000.0):
    """Return the matrix that moves every position by offset, (D, D).

    offset: any number, negative to step back. d_model: even. The columns
    are interleaved: sine, cosine, sine, cosine, and so on.
    """
    angles = offset * tf.constant(frequencies(d_model, base))  # (C,)
    cos, sin = tf.cos(angles), tf.sin(angles)  # (C,), (C,)
    # Each row of four becomes one 2 x 2 block.
    blocks = tf.stack([cos, sin, -sin, cos], axis=-1)  # (C, 4)
    blocks = tf.unstack(tf.reshape(blocks, (-1, 2, 2)))  # (C, 2, 2)
    operators = map(tf.linalg.LinearOperatorFullMatrix, blocks)
    return tf.linalg.LinearOperatorBlockDiag(list(operators)).to_dense()
