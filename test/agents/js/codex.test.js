// Codex with its default model and its built-in provider, which connects by WebSocket.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agent, compacts, key, run } from './stage.js';

const command = path.join(import.meta.dirname, 'node_modules/.bin/codex');

async function ask(scene, session, prompt, model) {
  const settings = path.join(scene.home, '.codex');
  if (!fs.existsSync(settings)) {
    fs.mkdirSync(settings);
    fs.writeFileSync(path.join(settings, 'config.toml'),
      `openai_base_url = "${scene.url}/v1"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n`);
  }
  const resume = session.begun ? ['resume', '--last'] : [];
  session.begun = true;
  const result = await run(scene, command,
    ['exec', ...resume, '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox',
      ...(model ? ['-m', model] : []), prompt],
    { CODEX_API_KEY: key });
  assert.equal(result.code, 0, result.all + scene.log());
  return result.out;
}

agent({
  native: 'responses', next: 'messages-5.5', other: 'gemini', named: 'gpt-6.1-sol', switched: 'gpt-other',
  ask,
  async more(scene) {
    // A connection is logged when it has ended.
    const connected = (line) => /method=GET path=\/v1\/responses status=101/.test(line);
    const deadline = Date.now() + 10_000;
    while (!scene.requests().some(connected) && Date.now() < deadline) await delay(20);
    const lines = scene.requests();
    assert.ok(lines.some(connected), lines.join('\n'));
    for (const line of lines) {
      assert.doesNotMatch(line, /status=426/);
      // The requests of a connection are logged by its own id and a number.
      if (/method=POST/.test(line)) assert.match(line, /request_id=\w+-\d+ /);
    }
  },
});

// A turn whose usage says that the conversation is nearly too long. Codex then has it compacted and goes on.
const long = { turns: [['shell'], ['file', 'shell'], ['shell'], []], long: [1] };
compacts('Codex has the vendor compact a long conversation in the middle of its loop', long,
  { ask, compacted: ['responses:2'], served: ['responses', 'responses', 'responses', 'responses'] });
compacts('Codex has a model of another vendor summarise a long conversation in the middle of its loop', long,
  { ask, model: 'gpt-other', compacted: ['gemini:2'], served: ['gemini', 'gemini', 'gemini', 'gemini'] });
