"""Makes the archives that tests/files/zip_test.cpp reads, with Python's zipfile. Run it in its own folder."""
import io
import struct
import zipfile

DAY = (1980, 1, 1, 0, 0, 0)


def info(name, method=zipfile.ZIP_STORED):
    entry = zipfile.ZipInfo(name, DAY)
    entry.compress_type = method
    return entry


with zipfile.ZipFile("stored.zip", "w") as archive:
    archive.writestr(info("metadata.json"), '{"keras_version": "3.0.0"}')
    archive.writestr(info("config.json"), "{}")
    archive.writestr(info("assets/"), "")
    archive.writestr(info("assets/größe/wörter.txt"), "eins\nzwei\n")
    archive.writestr(info("empty"), "")

with zipfile.ZipFile("deflated.zip", "w") as archive:
    archive.writestr(info("zeros", zipfile.ZIP_DEFLATED), bytes(1_000_000))
    archive.writestr(info("count", zipfile.ZIP_DEFLATED), b"".join(struct.pack("<I", i * i % 99991) for i in range(2000)))
    archive.writestr(info("nothing", zipfile.ZIP_DEFLATED), "")
    archive.comment = b"a comment with PK\x05\x06 in it"

# For the fuzzer: quick to unpack.
with zipfile.ZipFile("small.zip", "w") as archive:
    archive.writestr(info("zeros", zipfile.ZIP_DEFLATED), bytes(3000))
    archive.writestr(info("text.txt", zipfile.ZIP_DEFLATED), "to be or not to be " * 9)
    archive.writestr(info("plain"), "as it is")

# As numpy.savez does: zip64 records whether they are needed or not.
with zipfile.ZipFile("zip64.zip", "w") as archive:
    with archive.open(info("arr_0.npy"), "w", force_zip64=True) as entry:
        entry.write(b"\x93NUMPY and so on")


class Pipe(io.RawIOBase):
    """A file that cannot go back: sizes follow the entries."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


with open("streamed.zip", "wb") as file:
    with zipfile.ZipFile(Pipe(file), "w") as archive:
        archive.writestr(info("a"), "first")
        archive.writestr(info("b", zipfile.ZIP_DEFLATED), "second " * 20)
