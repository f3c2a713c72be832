"""From a judged job to one bundle for each team that has something to do."""

from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.owners import DEFAULT, Owners
from perfdiag.classifiers.triage.bundle import Triage
from perfdiag.classifiers.triage.making import Maker, TriageOptions
from perfdiag.classifiers.triage.redaction import plain_redactor, redact_report, redactor_of
from perfdiag.classifiers.triage.routing import assign
from perfdiag.classifiers.triage.slicing import ReadSources

__all__ = ["TriageOptions", "triage"]


def triage(judged: Judged, owners: Owners, options: TriageOptions) -> Triage:
    """Make a bundle for each team that has something to do.

    The traces of the ranks that are shown are read once more.

    Raises:
        InputError: a trace cannot be read again.
        EngineError: the trace processor failed.
    """
    redactor = redactor_of(judged) if options.redact else plain_redactor()
    report = redact_report(judged.report, redactor)
    source = owners.source
    file = source if source == DEFAULT else redactor.name("path", source)
    sources = ReadSources(judged, options.reading, options.adjust)
    maker = Maker(judged, report, redactor, sources, options)
    bundles = tuple(maker.bundle(one) for one in assign(judged, owners, options.today))
    return Triage(report, bundles, file, options.redact)
