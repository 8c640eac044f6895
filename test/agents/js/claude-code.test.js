// Claude Code with its default model and settings.
import assert from 'node:assert/strict';
import { agent, installed, key, run } from './stage.js';

const command = installed('@anthropic-ai/claude-code', 'claude');

agent({
  native: 'messages-5.5', next: 'responses', other: 'gemini', named: 'claude-opus-5-5', switched: 'claude-other',
  async ask(scene, session, prompt, model) {
    const resume = session.begun ? ['--continue'] : [];
    session.begun = true;
    const result = await run(scene, command,
      ['-p', prompt, '--dangerously-skip-permissions', ...resume, ...(model ? ['--model', model] : [])],
      {
        ANTHROPIC_BASE_URL: scene.url, ANTHROPIC_AUTH_TOKEN: key,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_TELEMETRY: '1', DISABLE_AUTOUPDATER: '1',
        IS_SANDBOX: '1', // else root may not skip the questions before each call
      });
    assert.equal(result.code, 0, result.all + scene.log());
    return result.out;
  },
});
