"""A module that takes an hour to import."""

import time

time.sleep(3600)
