// The OpenAI Agents SDK with its default model interface, responses.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import { agent, echo, key } from './stage.js';

setTracingDisabled(true);
const bash = tool({
  name: 'Bash', description: 'Run a command', strict: false,
  parameters: {
    type: 'object', properties: { command: { type: 'string' } }, required: ['command'], additionalProperties: true,
  },
  execute: ({ command }) => echo(command),
});

agent({
  native: 'responses', next: 'messages-5.5', other: 'gemini', switched: 'gpt-other', tools: ['shell', 'shell'],
  async ask(scene, session, prompt, model) {
    const modelProvider = new OpenAIProvider({ apiKey: key, baseURL: `${scene.url}/v1` });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const result = await runner.run(new Agent({ name: 'agent', tools: [bash], ...(model ? { model } : {}) }),
      [...(session.history ?? []), { role: 'user', content: prompt }], { maxTurns: 20 });
    session.history = result.history;
    return result.finalOutput;
  },
});
