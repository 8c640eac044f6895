// LangChain's chat models of both vendors, with a loop of tools as its pages show it.
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { describe } from 'node:test';
import { z } from 'zod';
import { agent, echo, key } from './stage.js';

const bash = tool(({ command }) => echo(command), {
  name: 'Bash', description: 'Run a command',
  schema: z.object({ command: z.string(), description: z.string().optional() }),
});

function ask(create) {
  return async (scene, session, prompt, model) => {
    session.messages ??= [];
    session.messages.push(new HumanMessage(prompt));
    const bound = create(scene, model).bindTools([bash]);
    for (let turn = 0; turn < 20; turn++) {
      let answer;
      for await (const chunk of await bound.stream(session.messages)) answer = answer ? answer.concat(chunk) : chunk;
      session.messages.push(answer);
      if (!answer.tool_calls?.length) return answer.text;
      for (const call of answer.tool_calls) {
        const content = echo(call.args.command);
        session.messages.push(new ToolMessage({ tool_call_id: call.id, name: call.name, content }));
      }
    }
    throw new Error('the loop did not end');
  };
}

const openai = (scene, model, more) => new ChatOpenAI({
  model, apiKey: key, maxRetries: 0, configuration: { baseURL: `${scene.url}/v1` }, ...more,
});
const only = { tools: ['shell', 'shell'] };
// Its messages have no place for the reasoning of other vendors of chat, so the vendor is one that has none.
describe('ChatOpenAI', () => agent({
  ...only, native: 'chat', next: 'gemini', other: 'responses', switched: 'chat-other',
  ask: ask((scene, model) => openai(scene, model ?? 'plain-1', {})),
}));
// The reasoning of vendors of other shapes is found again by the ids of the calls.
describe('ChatOpenAI with a model of messages that thinks', () => agent({
  ...only, native: 'messages-5.5', next: 'responses', other: 'gemini', switched: 'claude-other',
  ask: ask((scene, model) => openai(scene, model ?? 'claude-opus-5-5', { reasoning: { effort: 'high' } })),
}));
describe('ChatOpenAI with responses', () => agent({
  ...only, native: 'responses', next: 'messages-5.5', other: 'gemini', switched: 'gpt-other',
  ask: ask((scene, model) => openai(scene, model ?? 'gpt-6-sol', { useResponsesApi: true })),
}));
describe('ChatAnthropic', () => agent({
  ...only, native: 'messages-5.5', next: 'responses', other: 'gemini', switched: 'claude-other',
  ask: ask((scene, model) => new ChatAnthropic({
    model: model ?? 'claude-opus-5-5', apiKey: key, anthropicApiUrl: scene.url, maxRetries: 0,
  })),
}));
