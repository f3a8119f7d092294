// An HTTP server and a client of it with a kept-alive connection, in one Node.js process.
const fs = require('fs'), http = require('http');
const progress = process.argv[2];
const report = line => fs.appendFileSync(progress, line + '\n');
const fail = why => { report('FAIL ' + why); process.exit(99); };
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', piece => body += piece);
  request.on('end', () => setTimeout(() => response.end(String(Number(body) * 3)), 1));
});
server.listen(0, '127.0.0.1', () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  let ticks = 0;
  const round = () => {
    if (fs.existsSync(progress + '.stop')) { report('done'); process.exit(42); }
    const number = ticks + 1;
    const request = http.request({ port: server.address().port, host: '127.0.0.1', method: 'POST', agent }, response => {
      let body = '';
      response.on('data', piece => body += piece);
      response.on('end', () => {
        if (body !== String(number * 3)) fail(`asked ${number}, got ${body}`);
        report('tick ' + ++ticks);
        setTimeout(round, 2);
      });
    });
    request.on('error', error => fail(error));
    request.end(String(number));
  };
  round();
});
