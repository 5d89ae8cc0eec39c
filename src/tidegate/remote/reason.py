"""Turns errors of file systems and object stores into one line and a remedy."""

from __future__ import annotations

import re

_WHEN = re.compile(r"^When .*? in bucket '[^']*'(?: \(.*?\))?: |^When .*?': ")
_CODE = re.compile(r"AWS Error ([A-Z_]+)(?: \(HTTP status (\d+)\))? during \w+ operation: (.*)")
_REQUEST = re.compile(r" ?\(Request ID: [^)]*\)")
_GOOGLE = re.compile(r"google::cloud::Status\(([A-Z_]+): (.*?)(?: error_info=.*)?\)$")
_CURL = re.compile(r"curlCode: \d+, (.*?)(?:; Details: .*)?$")

KEYS = (
    "Give credentials that have access: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile "
    "in ~/.aws/credentials."
)
GOOGLE_KEYS = (
    "Give credentials that have access: the file in GOOGLE_APPLICATION_CREDENTIALS, or "
    "gs://anonymous@bucket/folder for a public bucket."
)
ANSWER = (
    "Check the network and the endpoint: ?endpoint_override=HOST:PORT&scheme=http in the URI, or "
    "AWS_ENDPOINT_URL, is for a server that is not Amazon's."
)
GOOGLE_ANSWER = (
    "Check the network, or name another server: ?endpoint_override=HOST:PORT&scheme=http."
)
BUCKET = "Check the name of the bucket, and the endpoint; buckets are not made here."
HADOOP = (
    "Install Hadoop's client, and set HADOOP_HOME, JAVA_HOME and CLASSPATH "
    "(hadoop classpath --glob), or ARROW_LIBHDFS_DIR."
)
_REFUSED = (
    "MissingAccessKeyId",
    "MissingSecretAccessKey",
    "ACCESS_DENIED",
    "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_ACCESS_KEY_ID",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "No user exists with",
    "InvalidAccessKeyId",
    "AccessDenied",
    "SignatureDoesNotMatch",
    "XAdminUserNotFound",
)
_SILENT = ("NETWORK_CONNECTION", "UNAVAILABLE", "Could not resolve", "no answer")


_OF_SERVERS = ("AWS Error", "google::cloud", "Azure", "HDFS")


def is_of_server(error: Exception) -> bool:
    """Whether a server raised this OSError, and not a library that found bad bytes in a file."""
    said = any(word in str(error) for word in _OF_SERVERS)
    return isinstance(error, FileNotFoundError) or (isinstance(error, OSError) and said)


def reason(error: Exception) -> str:
    """What is wrong, in a few words of the server or the system."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    google = _GOOGLE.search(text)
    if google is not None:
        return f"{google[1]}: {google[2].rpartition(' - ')[2]}"
    text = _REQUEST.sub("", _WHEN.sub("", text)).strip()
    code = _CODE.search(text)
    if code is None:
        return text.rstrip(".")
    curl = _CURL.search(code[3])
    said = curl[1] if curl else code[3]
    if said == "No response body.":
        said = ""
    status = f" ({code[2]})" if code[2] else ""
    return f"{code[1]}{status}: {said}".rstrip(".: ")


def remedy(error: Exception) -> str:
    """What the user can do about an error."""
    text = str(error)
    if "NO_SUCH_BUCKET" in text or "NoSuchBucket" in text or "bucket does not exist" in text:
        return BUCKET
    google = "google::cloud" in text
    if any(word in text for word in _REFUSED):
        return GOOGLE_KEYS if google else KEYS
    if "libhdfs" in text or "libjvm" in text:
        return HADOOP
    if any(word in text for word in _SILENT):
        return GOOGLE_ANSWER if google else ANSWER
    return "Give access to it, and start again."
