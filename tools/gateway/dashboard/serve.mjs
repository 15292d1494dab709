// SPDX-License-Identifier: Apache-2.0
//
// node serve.mjs GATEWAY_URL [PORT]: the files of packed/ as they are now, everything else from a gateway that runs. For
// work on the page: run pack.sh and load the page again, without a build of the gateway. Port 0 takes a free one.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [gateway, port = '8081'] = process.argv.slice(2);
if (!gateway) {
  console.error('usage: node serve.mjs GATEWAY_URL [PORT]');
  process.exit(2);
}
const packed = join(dirname(fileURLToPath(import.meta.url)), 'packed');
const FILES = { '/': 'index.html', '/dashboard.js': 0, '/dashboard.css': 0, '/icon.svg': 0, '/licences.txt': 0 };

const server = http.createServer((request, reply) => {
  const { pathname } = new URL(request.url, 'http://here');
  const file = pathname in FILES && (FILES[pathname] || pathname.slice(1));
  const target = new URL(request.url, gateway);
  // Without the forms that the client takes: the gateway would say that it sends the file packed.
  const { host, origin, 'accept-encoding': __, ...headers } = request.headers;
  if (origin) headers.origin = target.origin;
  const asked = http.request(target, { method: request.method, headers }, (got) => {
    // The gateway's own headers hold for the file too: its policy is tried here as well.
    const { 'content-length': _, ...rest } = got.headers;
    reply.writeHead(got.statusCode, file ? rest : got.headers);
    if (file) {
      got.resume();
      reply.end(readFileSync(join(packed, file)));
    } else {
      reply.flushHeaders(); // of a stream that has nothing to tell yet
      got.pipe(reply);
    }
  });
  asked.on('error', () => reply.destroy());
  reply.on('close', () => asked.destroy());
  request.pipe(asked);
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));
