"""Published studies by name.

>>> import lockwright as lw
>>> lw.papers.rtas2008.figure(1)
<PublishedStudy: lockwright study rtas2008 --figure=1>
"""

from ._published import PublishedStudy, Rtas2008

rtas2008 = Rtas2008()
"""Brandenburg, Calandrino, Block, Leontyev, Anderson: To Block or Not to Block, to Suspend or Spin?, RTAS 2008."""

__all__ = ["PublishedStudy", "rtas2008"]
