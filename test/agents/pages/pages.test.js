// The pages of docs/clients, with exactly the lines that stand on them: files are written where a page says, commands
// are run, and what they print is compared with the page. Only the address of the gateway is another one. The gateway
// is that of docs/sandbox.yaml, as for the other examples of docs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gateway, run } from '../js/stage.js';

const root = path.join(import.meta.dirname, '../../..');
const folder = path.join(root, 'docs/clients');
// The packages of the other suites come first; this folder has those that only the pages need.
const modules = ['../js', '.'].map((dir) => path.join(import.meta.dirname, dir, 'node_modules'));
const address = 'http://127.0.0.1:8080'; // of the pages

// A block of a page begins with ```LANGUAGE WORD, where WORD is file=PATH, client or prints; other blocks are not run.
function blocksOf(text) {
  return [...text.matchAll(/^```(\w+) (\S+)\n(.*?)^```$/gms)].map(([, , word, body]) => ({ word, body }));
}

// Programs that have one package for each platform, and no launcher without an install script.
const platform = `${process.platform}-${process.arch}`;
const programs = {
  claude: `@anthropic-ai/claude-code-${platform}/claude`,
  cline: `@cline/cli-${platform}/bin/cline`,
  opencode: `opencode-${platform}/bin/opencode`,
};

const squeezed = (text) => text.replace(/\s+/g, '');

// printed reports whether output has the pieces of expected, which ... separates, in their order.
function printed(output, expected) {
  let at = 0;
  return squeezed(expected).split('...').every((piece) => {
    const found = squeezed(output).indexOf(piece, at);
    at = found + piece.length;
    return found >= 0;
  });
}

// link makes a link to what the first folder of modules has that has it, unless there is one already.
function link(at, file) {
  const found = modules.map((dir) => path.join(dir, file)).find((each) => fs.existsSync(each));
  if (!found || fs.existsSync(at)) return;
  fs.mkdirSync(path.dirname(at), { recursive: true });
  fs.symlinkSync(found, at);
}

async function play(t, blocks, requests) {
  const scene = await gateway(t, ['--config', path.join(root, 'docs/sandbox.yaml')]);
  const bin = path.join(scene.home, 'bin');
  for (const [name, file] of Object.entries(programs)) link(path.join(bin, name), file);
  for (const dir of modules) {
    for (const name of fs.readdirSync(path.join(dir, '.bin'))) link(path.join(bin, name), path.join('.bin', name));
    for (const name of fs.readdirSync(dir)) {
      const packages = name.startsWith('@') ? fs.readdirSync(path.join(dir, name)) : [''];
      for (const each of packages) {
        link(path.join(scene.files, 'node_modules', name, each), path.join(name, each));
      }
    }
  }
  let output = '';
  for (const { word, body } of blocks) {
    const text = body.replaceAll(address, scene.url);
    if (word.startsWith('file=')) {
      const file = path.resolve(scene.files, word.slice('file='.length).replace(/^~/, scene.home));
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, text);
    } else if (word === 'client') {
      const result = await run(scene, 'bash', ['-eu', '-o', 'pipefail', '-c', text],
        { PATH: `${bin}:${process.env.PATH}` }, 180_000);
      assert.equal(result.code, 0, result.all + scene.log());
      output = result.out;
    } else if (word === 'prints') {
      assert.ok(printed(output, body), `expected\n${body}\nprinted\n${output}\n${scene.log()}`);
    }
  }
  for (const [, method, route] of requests) {
    const line = new RegExp(`method=${method} path=${route.replaceAll(/\{\w+\}/g, '[^ ]+')} status=(200|101)`);
    const logged = () => scene.requests().some((request) => line.test(request));
    const deadline = Date.now() + 10_000; // the log of a request, or of a connection, follows its end
    while (!logged() && Date.now() < deadline) await delay(20);
    assert.ok(logged(), `no ${method} ${route}:\n${scene.log()}`);
  }
}

let played = 0;
for (const page of fs.readdirSync(folder)) {
  const text = fs.readFileSync(path.join(folder, page), 'utf8');
  const blocks = blocksOf(text);
  if (!blocks.some(({ word }) => word === 'client')) continue;
  played++;
  // The requests that a page promises are in the log of the gateway.
  const [, promised] = text.match(/^It sends (.*?)\.$/ms) ?? assert.fail(`${page}: no line "It sends ..."`);
  test(page, (t) => play(t, blocks, [...promised.matchAll(/`(GET|POST) ([^` ?]+)/g)]));
}
test('no page is left out', () => assert.ok(played >= 13, `${played} pages have commands`));
