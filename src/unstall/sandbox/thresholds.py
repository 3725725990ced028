"""Every number that decides in and about a sandbox: its value, its unit, and why it is that.

The processes inside a sandbox read it too, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from typing import Annotated

    from unstall.threshold import Bytes, Seconds

# The disk that takes what programs write.
RESERVE_BYTES: Annotated[Bytes, "no experiment begins with less free: what it writes must not fill the disk"] = 1 << 30
LEAST_FREE_BYTES: Annotated[Bytes, "with less, an experiment is ended: other programs need the disk, too"] = 256 << 20
DISK_LOOK_S: Annotated[Seconds, "between two looks: a disk of 100 MB/s does not fill those bytes in between"] = 2.0

# How long it waits for others.
ENDING_S: Annotated[Seconds, "for killed processes to be gone: one that waits for a disk ends only after that"] = 10.0
KEEPER_S: Annotated[Seconds, "for the keeper to end processes, put back files and remove layers of gigabytes"] = 120.0
PROOF_S: Annotated[Seconds, "for the trial that proves the overlays: it writes one file to each of some folders"] = 60.0
SERVICE_S: Annotated[Seconds, "for a service to take a connection, and for a name server to answer"] = 10.0

# How much is looked at.
MOST_ENTRIES: Annotated[int, "entries", "of a folder, gone through one by one: one of data holds millions"] = 2000
MOST_INTERFACES: Annotated[int, "network interfaces", "made anew: a machine of containers may have thousands"] = 32
