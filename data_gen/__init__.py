"""Synthetic data with true labels, for experiments that need no download.

    from data_gen import ImageSpec, ensure, read_manifest

    root = ensure(ImageSpec(classes=10, per_class=100, size=256))
    records = read_manifest(root)

Nothing here imports torch: the data are plain files.
"""

from data_gen.cache import cache_folder, ensure
from data_gen.images import ImageRecord, ImageSpec, read_manifest

__all__ = ["ImageRecord", "ImageSpec", "cache_folder", "ensure", "read_manifest"]
