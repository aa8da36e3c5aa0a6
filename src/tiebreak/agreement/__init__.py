"""Agreement: how far workers give the same labels, before anything is inferred.

>>> import tiebreak as tb
>>> rows = [("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 2), ("b", "eve", 1)]
>>> found = tb.agreement.report(rows, n_resamples=0)
>>> round(found.percent, 4), round(found.alpha.value, 4)
(0.6667, 0.3333)
"""

from tiebreak.agreement.coefficients import (
    Alpha,
    Counts,
    count_labels,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from tiebreak.agreement.pairs import CohenKappas, cohen_kappas
from tiebreak.agreement.reports import AgreementReport, report
from tiebreak.agreement.suspects import Copies, Spam, find_copies, find_spam

__all__ = [
    "AgreementReport",
    "Alpha",
    "CohenKappas",
    "Copies",
    "Counts",
    "Spam",
    "cohen_kappas",
    "count_labels",
    "find_copies",
    "find_spam",
    "fleiss_kappa",
    "krippendorff_alpha",
    "percent_agreement",
    "report",
]
