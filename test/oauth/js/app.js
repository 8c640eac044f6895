// The app that the suite has registered. Its callback sends the browser on to its own front page, with the code.
import { createServer } from 'node:http';
import { redirectUri } from './gateway.js';

const { port } = new URL(redirectUri);
export const home = `http://localhost:${port}/home`;

let listening;

// serveApp starts the app of all files that a process runs. It ends with the process.
export function serveApp() {
  listening ??= new Promise((resolve) => {
    createServer((req, res) => {
      if (req.url.startsWith('/cb')) res.writeHead(302, { location: `${home}?${req.url.split('?')[1]}` }).end();
      else res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>home</h1>');
    }).listen(port, resolve).unref();
  });
  return listening;
}
