import os.path, xml.dom.minidom, scipy.stats, email.mime.text as mime
import numpy as np
import importlib, collections.abc
from math import *
from math import sqrt as root
from os import path as paths
import torch.nn.functional as F
import torch
from IPython.display import HTML, clear_output, display as show
page, bell = HTML("x"), (lambda: clear_output(wait=True))
def normal(x):
    return scipy.stats.norm.cdf(x)
def uses():
    import json
    from string import ascii_letters
    return (sin(0), root(4), paths.join("a", "b"), mime.MIMEText.__name__, F.relu(torch.tensor(-1.0)).item(),
            xml.dom.minidom.Document.__name__, os.path.sep, json.dumps(1), np.linalg.norm([3, 4]), pi,
            isinstance([], collections.abc.Sequence))
loads = importlib.import_module("json").loads
# %%
%%parallel out=back
bell()
assert show is display and HTML("y").data == "y" and page.data == "x"
back = normal(0.0), uses(), loads("[1]"), scipy.stats.norm.cdf(0.0)
# %%
assert all(b == (0.5, uses(), [1], 0.5) for b in back), back
