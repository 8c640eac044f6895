// What the suites of agents have in common: a gateway in front of the strict upstreams, a home of the
// client's own, and programs that run for a bounded time. run.sh starts the upstreams.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

function need(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; start the suite with ../run.sh`);
  return value;
}

const program = need('STAGEDOOR_BINARY');
const upstreams = need('STAGEDOOR_UPSTREAMS');
export const key = 'sd-agents';

// The upstreams, by the vendor whose API they have, and the names that clients ask for by default. A name
// with -other has a vendor of another shape, so that asking for it switches vendors.
const provider = (shape, at) => ({ shape, base_url: `${upstreams}/${at}`, api_keys: ['sk-up'], retries: 0 });
const target = {
  responses: { provider: 'responses', model: 'gpt-6-sol' },
  messages: { provider: 'messages', model: 'claude-opus-5-5' },
  gemini: { provider: 'gemini', model: 'gemini-3.1-pro-preview' },
  chat: { provider: 'chat', model: 'deepseek-v4-pro' },
  plain: { provider: 'plain', model: 'gpt-4.1' },
};
const configuration = {
  data: 'memory',
  keys: [{ key, name: 'agents' }],
  providers: {
    responses: provider('responses', 'responses/v1'),
    messages: provider('messages', 'messages-5.5'),
    gemini: provider('gemini', 'gemini'),
    chat: provider('chat', 'thinking-chat/v1'),
    plain: provider('chat', 'chat/v1'),
  },
  models: {
    'claude-*': { targets: [target.messages], fallback: [target.responses] },
    'gpt-*': { targets: [target.responses], fallback: [target.messages] },
    'gemini-*': { targets: [target.gemini], fallback: [target.responses] },
    'chat-*': { targets: [target.chat], fallback: [target.gemini] },
    'plain-*': { targets: [target.plain], fallback: [target.gemini] },
    'claude-other': { targets: [target.gemini] },
    'gpt-other': { targets: [target.gemini] },
    'gemini-other': { targets: [target.messages] },
    'chat-other': { targets: [target.responses] },
  },
};

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

// gateway starts a gateway for one test, in a home of its own, with the arguments that configure it. Everything ends
// with the test.
export async function gateway(t, args) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'stagedoor-agents-'));
  t.after(() => fs.rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  const files = path.join(home, 'project');
  fs.mkdirSync(files);
  const url = `http://127.0.0.1:${await freePort()}`;
  const served = spawn(program, ['serve', '--listen', url.slice('http://'.length), ...args],
    { cwd: home, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [served.stdout, served.stderr]) stream.on('data', (data) => { log += data; });
  t.after(async () => {
    served.kill();
    if (served.exitCode === null) await once(served, 'exit');
  });
  for (let tries = 0; ; tries++) {
    const ready = await fetch(`${url}/readyz`).catch(() => undefined);
    if (ready?.ok) break;
    assert.ok(tries < 200 && served.exitCode === null, `the gateway is not ready:\n${log}`);
    await delay(50);
  }
  return {
    url, home, files,
    log: () => log,
    requests: () => log.split('\n').filter((line) => line.includes('msg=request') || line.includes('"msg":"request"')),
  };
}

// stage starts a gateway in front of the strict upstreams and sets what they do: turns are the calls of each turn of
// the conversation, failing an upstream that answers with a status from a turn on.
async function stage(t, { turns, failing = '', from = 0, status = 0, long = [] }) {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'stagedoor-agents-')), 'stagedoor.yaml');
  t.after(() => fs.rmSync(path.dirname(file), { recursive: true, force: true }));
  fs.writeFileSync(file, JSON.stringify(configuration));
  const scene = await gateway(t, ['--config', file]);
  turns.forEach((calls, turn) => calls.forEach((_, i) =>
    fs.writeFileSync(path.join(scene.files, `t${turn}c${i}.txt`), `result of t${turn}c${i}\n`)));
  const set = await fetch(`${upstreams}/plan`, {
    method: 'PUT', body: JSON.stringify({ turns, files: scene.files, failing, from, status, long }),
  });
  assert.equal(set.status, 200);
  return { ...scene, report: async () => (await fetch(`${upstreams}/report`)).json() };
}

// run runs a client's program with only the given environment until it ends, at most for a time, and
// returns what it printed. No process of the client outlives it.
export async function run(scene, command, args, env, milliseconds = 60_000) {
  const child = spawn(command, args, {
    cwd: scene.files, detached: true, stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH, HOME: scene.home, TMPDIR: scene.home, LANG: 'C.UTF-8', TERM: 'dumb', SHELL: '/bin/bash',
      // What is not on this machine is not reached: a proxy that nothing listens on.
      HTTP_PROXY: 'http://127.0.0.1:9', HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost', ...env,
    },
  });
  const end = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* it has ended */ } };
  let out = '', err = '', late = false;
  child.stdout.on('data', (data) => { out += data; });
  child.stderr.on('data', (data) => { err += data; });
  const timer = setTimeout(() => { late = true; end(); }, milliseconds);
  try {
    const [code] = await once(child, 'close');
    const all = `${out}\n${err}`.slice(-6000);
    assert.ok(!late, `took longer than ${milliseconds} ms:\n${all}\n${scene.log().slice(-4000)}`);
    return { code, out, err, all };
  } finally {
    clearTimeout(timer);
    end();
  }
}

// whole checks that the loop went through to its last answer with nothing refused or lost, but for what the client
// itself forgets. served lists the upstreams of the turns.
async function whole(scene, served, forgets) {
  const report = await scene.report();
  const lost = report.lost?.filter((line) => !forgets?.test(line)) ?? [];
  const shown = JSON.stringify(report, undefined, 1) + '\n' + scene.log().slice(-4000);
  assert.deepEqual(report.bad, null, shown);
  assert.deepEqual(lost, [], shown);
  assert.deepEqual(report.served, served.map((name, turn) => `${name}:${turn}`), shown);
  return report;
}

// agent holds the tests that every client passes. native is the upstream that serves the client's default
// model, next the one that is tried after it, and other the one behind the model named in switched.
// ask(scene, session, prompt, model) has the client answer a prompt, with its default model if none is
// named, goes on with the conversation that session has been used for, and returns the client's last text.
// more checks the gateway's log of a conversation. forgets matches what the client does not send again of a
// conversation that it resumes.
export function agent({
  native, next, other, named, switched, ask, tools = ['shell', 'file'], more = () => {}, forgets,
}) {
  const [first, second] = tools;
  const play = async (t, plan, prompts, served, forgets) => {
    const scene = await stage(t, plan);
    const session = {};
    let text;
    for (const [prompt, model] of prompts) text = await ask(scene, session, prompt, model);
    await whole(scene, served, forgets);
    assert.match(text, new RegExp(`answer t${served.length - 1}c9`));
    await more(scene);
    return scene;
  };
  const loop = [[first], [second, first], [first], [second], []];
  test('it starts and gets its first answer', (t) => play(t, { turns: [[]] }, [['Say something']], [native]));
  test('a loop of tools goes on to its end', (t) =>
    play(t, { turns: loop }, [['Do it']], [native, native, native, native, native]));
  for (const status of [529, 500]) {
    test(`a loop goes on when its upstream answers ${status} from the third turn on`, async (t) => {
      const scene = await play(t, { turns: loop, failing: native, from: 2, status }, [['Do it']],
        [native, native, next, next, next]);
      assert.equal((await scene.report()).failed[0], `${native}:2`);
    });
  }
  test('a conversation goes on with a model of another vendor, and back', (t) =>
    play(t, { turns: [[first], [], [second, first], [], [first], []] },
      [['Do it'], ['Go on', switched], ['And again', named]], [native, native, other, other, native, native], forgets));
}

// compacts is the test of an agent that has a long conversation compacted, and goes on with its loop. compacted lists
// the upstream and the turn of each request for that, and served the upstreams of the turns.
export function compacts(name, plan, { ask, model, compacted, served }) {
  test(name, async (t) => {
    const scene = await stage(t, plan);
    const text = await ask(scene, {}, 'Do it', model);
    const report = await whole(scene, served);
    assert.deepEqual(report.compacted, compacted, JSON.stringify(report, undefined, 1));
    assert.match(text, new RegExp(`answer t${served.length - 1}c9`));
  });
}

// installed returns the program of a command line client whose package has one for each platform.
export function installed(name, program) {
  return path.join(import.meta.dirname, 'node_modules', `${name}-${process.platform}-${process.arch}`, program);
}

// echo is the tool of frameworks, which bring none along: it runs the one command that upstreams ask for.
export function echo(command) {
  assert.match(command, /^echo result of t\d+c\d+$/);
  return command.slice('echo '.length);
}
