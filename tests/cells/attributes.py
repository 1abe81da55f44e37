# reads: np scipy x
# binds: np y
# attributes: np.linalg.norm np.random.default_rng scipy.stats.norm x.shape y.T
y = scipy.stats.norm(x.shape[0]).cdf(0)
y.T[0] = np.linalg.norm(y)
import numpy as np
np.random.default_rng(0)
