# reads: print torch
# binds: F join numpy os p root
# attributes: os.path.join torch.nn torch.nn.functional
torch.nn
import os.path, numpy
import os.path as p
import torch.nn.functional as F
from os.path import join
from math import sqrt as root
print(os.path.join, p, F, join, root, numpy, torch.nn.functional)
