"""What a trace shows of a region, as numbers for a classifier: documented, and free of scale."""

from perfdiag.classifiers.features.catalogue import FEATURES
from perfdiag.classifiers.features.feature import Feature
from perfdiag.classifiers.features.table import FeatureTable, rank_features

__all__ = ["FEATURES", "Feature", "FeatureTable", "rank_features"]
