"""Many channels as three colours or as points in the plane, by scikit-learn."""

import numpy as np

# scikit-learn is imported when it is used: only the extra `vis` brings it.


def to_colours(feature: np.ndarray) -> tuple[np.ndarray, float]:
    """The first three principal components as red, green and blue: (C, h, w) -> (h, w, 3).

    Each from its 1st to its 99th percentile; with the share of the variance that they keep.
    """
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


def scatter_channels(feature: np.ndarray) -> np.ndarray:
    """Places of channels in the plane, near if their maps are alike: (C, h, w) -> (C, 2)."""
    from sklearn.manifold import TSNE

    channels = feature.reshape(len(feature), -1)
    perplexity = min(30, (len(channels) - 1) / 3)
    return TSNE(perplexity=perplexity, init='random', random_state=0).fit_transform(channels)
