"""Code that libraries usually have launchers for runs in parallel cells as it stands."""

from __future__ import annotations

import pytest
from kernels import Kernel

pytestmark = pytest.mark.timeout(300)  # importing lightning alone takes seconds, in each rank

SETUP = """
import nbshm, torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
pixels, labels = load_digits(return_X_y=True)
pixels, labels = pixels[:640] / 16, labels[:640]
digits = TensorDataset(torch.tensor(pixels, dtype=torch.float32), torch.tensor(labels))
def close(weights): return all(torch.allclose(weight, serial, atol=1e-5) for weight in weights)
"""

ACCELERATE = """
from accelerate import Accelerator
def train(batch):
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(digits, batch))
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(model(x), y))
        optimizer.step()
    weight = accelerator.unwrap_model(model).weight.detach()
    accelerator.end_training()
    return accelerator.num_processes, weight
"""

LIGHTNING = """
import logging, warnings, lightning
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Classifier(lightning.LightningModule):
    def __init__(self, fails=False):
        super().__init__()
        self.fails = fails
        torch.manual_seed(0)
        self.layer = nn.Linear(64, 10)
    def training_step(self, batch, number):
        if self.fails and self.global_rank == 1 and number == 3:
            raise ValueError("mine")
        x, y = batch
        return nn.functional.cross_entropy(self.layer(x), y)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
def fit(model, loader, **options):
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False, **options)
    trainer.fit(model, loader)
    return trainer.world_size, model.layer.weight.detach()
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


def test_accelerate_trains_in_all_ranks_what_it_trains_serially(notebook: Kernel) -> None:
    pytest.importorskip("accelerate", reason="needs the extra 'launchers'")
    notebook.run(ACCELERATE).check()
    notebook.run("%%parallel nprocs=2 out=processes,weight\nprocesses, weight = train(batch=32)").check()
    assert notebook.value("processes") == [2, 2]
    notebook.run("serial = train(batch=64)[1]").check()
    assert notebook.value("close(weight)") is True


def test_lightning_trains_in_all_ranks_what_it_trains_serially(notebook: Kernel) -> None:
    pytest.importorskip("lightning", reason="needs the extra 'launchers'")
    notebook.run(LIGHTNING).check()
    notebook.run(
        "%%parallel nprocs=2 out=processes,weight\n"
        "sampler = DistributedSampler(digits, nprocs, rank, shuffle=False)\n"
        "loader = DataLoader(digits, 32, sampler=sampler)\n"
        'processes, weight = fit(Classifier(), loader, devices=nprocs, strategy="ddp")'
    ).check()
    assert notebook.value("processes") == [2, 2]
    notebook.run("serial = fit(Classifier(), DataLoader(digits, 64), devices=1)[1]").check()
    assert notebook.value("close(weight)") is True

    failed = notebook.run(
        "%%parallel nprocs=2\nfit(Classifier(fails=True), DataLoader(digits, 32), devices=nprocs)"
    )
    assert failed.error is not None
    assert "ValueError: mine" in failed.error[2]
    assert notebook.value("[failure.rank for failure in nbshm.last.failures]") == [1]
