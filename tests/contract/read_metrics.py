# SPDX-License-Identifier: Apache-2.0
"""read_metrics.py URL [ACCEPT]: fetches a page of metrics, has prometheus_client parse it as what its Content-Type says,
and prints the type, then a line `NAME{LABELS} VALUE` for each sample. Exit 77: prometheus_client is not installed."""

import sys
import urllib.request

try:
    from prometheus_client.openmetrics import parser as openmetrics
    from prometheus_client import parser as text
except ImportError:
    sys.exit(77)

request = urllib.request.Request(sys.argv[1])
if len(sys.argv) > 2:
    request.add_header("Accept", sys.argv[2])
with urllib.request.urlopen(request, timeout=30) as reply:
    content_type = reply.headers["Content-Type"]
    page = reply.read().decode()
print(content_type)
reader = openmetrics if content_type.startswith("application/openmetrics-text") else text
for family in reader.text_string_to_metric_families(page):
    for sample in family.samples:
        labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
        print(f"{sample.name}{{{labels}}} {sample.value:g}")
