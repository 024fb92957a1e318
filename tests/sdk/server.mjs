// A vendor's API on the loopback interface: it checks each request as the vendor does.
import { createServer } from 'node:http';

/**
 * Starts one. `script` says, for each request in order, what to answer (see `answer` of the
 * vendor's module), `{ overflow: [window, tokens] }` or `{ fails: status }`; after its end every
 * answer is a text.
 */
export async function serve(vendor, script = []) {
  const requests = [];
  const left = [...script];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const send = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname !== vendor.path) return send(404, vendor.refusal(`no such path: ${pathname}`));
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    requests.push(body);
    const problem = vendor.problem(body);
    if (problem !== undefined) return send(400, vendor.refusal(problem));
    const next = left.shift() ?? {};
    if (next.overflow) {
      const refused = vendor.overflow(...next.overflow);
      return send(refused.status, refused.body);
    }
    if (next.fails) return send(next.fails, vendor.refusal('The server had an error.'));
    if (!body.stream) return send(200, vendor.answer(next));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of vendor.events(next)) response.write(`data: ${event}\n\n`);
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    /** Bodies of the requests that came, in order. */
    requests,
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}
