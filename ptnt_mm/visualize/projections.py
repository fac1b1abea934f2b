"""Projections of feature maps for drawing: three colours, a similarity, points."""

import numpy as np


def to_colours(feature: np.ndarray) -> tuple[np.ndarray, float]:
    """The first three principal components as red, green and blue: (C, h, w) -> (h, w, 3).

    Each is scaled from its 1st to its 99th percentile. Also returns the share of the variance kept.
    """
    # Imported late: only the extra `vis` installs it.
    from sklearn.decomposition import PCA

    places = feature.reshape(len(feature), -1).T
    colours, kept = np.full((len(places), 3), 0.5), 0.0
    if np.ptp(places, axis=0).any():
        pca = PCA(min(3, len(feature), len(places) - 1)).fit(places)
        components, kept = pca.transform(places), pca.explained_variance_ratio_.sum()
        low, high = np.percentile(components, (1, 99), axis=0)
        scaled = (components - low) / np.maximum(high - low, 1e-9)
        colours[:, : pca.n_components_] = scaled.clip(0, 1)
    return colours.reshape(*feature.shape[1:], 3), float(kept)


def similarity(feature: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """Compare all places with the mean of some of them: (C, h, w), (h, w) bool -> (h, w).

    Returns:
        Cosine similarities in [-1, 1]. The mean of the map is subtracted first, because features
        shared by all places would make everything similar.
    """
    feature = feature - feature.mean(axis=(1, 2), keepdims=True)
    unit = feature / np.maximum(np.linalg.norm(feature, axis=0), 1e-9)
    mean = feature[:, covered].mean(axis=1)
    return np.tensordot(mean / max(np.linalg.norm(mean), 1e-9), unit, axes=1)


def scatter_channels(feature: np.ndarray) -> np.ndarray:
    """Embed channels in the plane, similar maps close together: (C, h, w) -> (C, 2)."""
    from sklearn.manifold import TSNE

    channels = feature.reshape(len(feature), -1)
    perplexity = min(30, (len(channels) - 1) / 3)
    return TSNE(perplexity=perplexity, init='random', random_state=0).fit_transform(channels)
