// Gemini CLI with its default model.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { agent, key, run } from './stage.js';

const command = path.join(import.meta.dirname, 'node_modules/.bin/gemini');

agent({
  // When it resumes a session, it sends no signatures and each response twice.
  forgets: /^gemini: turn [45]: (the signature of|element \d+ was)/,
  native: 'gemini', next: 'responses', other: 'messages-5.5', named: 'auto', switched: 'gemini-other',
  async ask(scene, session, prompt, model) {
    const settings = path.join(scene.home, '.gemini');
    if (!fs.existsSync(settings)) {
      fs.mkdirSync(settings);
      // The program refuses to run a prompt with the way of signing in that it chooses by itself.
      fs.writeFileSync(path.join(settings, 'settings.json'), JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }));
    }
    const resume = session.begun ? ['--resume', 'latest'] : [];
    session.begun = true;
    const result = await run(scene, command, ['-p', prompt, '--yolo', ...resume, ...(model ? ['-m', model] : [])],
      { GOOGLE_GEMINI_BASE_URL: scene.url, GEMINI_API_KEY: key, GEMINI_CLI_TRUST_WORKSPACE: 'true' });
    assert.equal(result.code, 0, result.all + scene.log());
    return result.out;
  },
});
