import os, random
import numpy as np, torch
from os import environ
from random import randint, seed
from numpy.random import rand
from torch import default_generator
def sample(): return randint(0, 1 << 40), rand()
class Dice: roll = staticmethod(randint)
held = [default_generator, np.random.mtrand._rand, environ]
# %%
%%parallel out=drawn
assert environ is held[2] is os.environ and held[0] is default_generator is torch.default_generator
assert held[1] is np.random.mtrand._rand
environ["OF_THE_RANK"] = str(rank)
assert os.environ["OF_THE_RANK"] == str(rank)
drawn = *sample(), Dice.roll(0, 1 << 40), torch.rand(1, generator=default_generator).item()
seed(3)
assert random.random() == random.Random(3).random()
# %%
assert len({number for numbers in drawn for number in numbers}) == 4 * len(drawn)
assert "OF_THE_RANK" not in environ
