"""Putting a reader's training objects back as they were."""

import contextlib
import copy
from collections.abc import Iterator, Sequence

from torch import Tensor, nn


@contextlib.contextmanager
def restored(keep: Sequence[object]) -> Iterator[None]:
    """Restore models, optimisers, schedulers when the block ends.

    Args:
        keep: objects with ``state_dict`` and ``load_state_dict``. Of a module the
            gradients and the buffers outside its state dict are restored too.

    Raises:
        TypeError: an object has no state to restore.
    """
    for item in keep:
        if not (hasattr(item, "state_dict") and hasattr(item, "load_state_dict")):
            raise TypeError(
                f"keep: a {type(item).__name__} has no state_dict to restore; give "
                "the model, the optimizer, the scheduler"
            )
    states = [copy.deepcopy(item.state_dict()) for item in keep]
    tensors = [_BesideTheState(item) for item in keep]
    try:
        yield
    finally:
        for item, state, beside in zip(keep, states, tensors, strict=True):
            item.load_state_dict(state)
            beside.put_back()


class _BesideTheState:
    """Gradients and buffers of a module, which its state dict leaves out."""

    def __init__(self, item: object) -> None:
        module = item if isinstance(item, nn.Module) else nn.Module()
        self.gradients = [(p, _copy(p.grad)) for p in module.parameters()]
        self.buffers = [(buffer, _copy(buffer)) for buffer in module.buffers()]

    def put_back(self) -> None:
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        for buffer, values in self.buffers:
            buffer.data.copy_(values)


def _copy(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().clone()
