"""In which parts of the model a fix saves its time."""

from typing import Any

from kineto_builder import GEMM, KinetoBuilder


def job(layers: int, loading_layer: int | None = None) -> KinetoBuilder:
    """A step of annotated layers; each waits for data, or only one of them does."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for layer in range(layers):
                with b.annotation(f"layers.{layer}.mlp"):
                    if loading_layer in (None, layer):
                        b.loader(100)
                    b.launch(GEMM, 50)
                    b.sync()
    return b


def places(found: Any) -> list[tuple[str, str]]:
    (fix,) = [fix for fix in found.fixes if fix.id == "loader_stall"]
    return [(place.kind, place.name) for place in fix.regions if place.kind == "annotation"]


def test_the_part_is_named(examine: Any) -> None:
    """What is saved in one layer is said of that layer, and how much it is."""
    found = examine(job(4, loading_layer=2))
    assert places(found) == [("annotation", "layers.2.mlp")]
    (fix,) = [fix for fix in found.fixes if fix.id == "loader_stall"]
    (place,) = [place for place in fix.regions if place.kind == "annotation"]
    assert place.saving_ns_per_step == fix.saving_ns_per_step


def test_layers_alike_are_one(examine: Any) -> None:
    """Spread over twenty layers, none of which holds a tenth, it is said of all of them."""
    assert places(examine(job(20))) == [("annotation", "layers.*.mlp")]
