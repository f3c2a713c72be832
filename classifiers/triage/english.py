"""The words that reports are written with, which say nothing of a trace."""

import re
from functools import cache

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.labels import PHRASES
from perfdiag.trace_schemas.report import LABELS, LAYERS, LEAVES

__all__ = ["report_words"]

_FRAME = """
a about above after again all alone also an and any are as ask at be because been before behind
below beside between both but by calls can cannot clock come comes count device does done each
else end ends event events few figure figures first for from give given has have held holds host
how in into is it its job kernel kernels know known last late later launch leave less like long
longer longest lost many may mean median memory more most mostly move much must name named need
needs new no none not nothing of off on once one only operator or other others out over own part
per phase piece pieces place rank ranks rather read reads region run runs same say says second see
select share shows since slice slices so some spent stand start starts step steps still stream
such take takes than that the their them then there these they thing this those time times to
together told trace traces two until up us value wait waited waiting waits was were what when where
which while who whom whose will with within without work works year you zero ns ms us share
"""


@cache
def report_words() -> frozenset[str]:
    """Words of the sentences that perfdiag itself writes, in lower case."""
    texts = [_FRAME, *PHRASES.values(), *LABELS, *LAYERS, *LEAVES]
    for diagnosis, diagnose in all_diagnoses():
        texts += [diagnosis.id, diagnosis.title, diagnosis.title_ok, diagnosis.how]
        texts += [diagnosis.verify, diagnosis.refuted_by]
        texts += _constants(diagnose.__globals__)
    words = re.findall(r"[^\W\d]\w*", " ".join(texts))
    return frozenset(part for word in words for part in _parts(word.lower()))


def _parts(word: str) -> list[str]:
    return [word, *word.split("_")]


def _constants(module: dict[str, object]) -> list[str]:
    """The texts of which a diagnosis makes its sentences."""
    found = []
    for thing in module.values():
        code = getattr(thing, "__code__", None)
        if code is not None:
            found += [one for one in code.co_consts if isinstance(one, str)]
    return found
