// The Vercel AI SDK with each of its packages.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import { describe } from 'node:test';
import { z } from 'zod';
import { agent, echo, key } from './stage.js';

const tools = {
  Bash: tool({
    description: 'Run a command',
    inputSchema: z.object({ command: z.string(), description: z.string().optional() }),
    execute: ({ command }) => echo(command),
  }),
};

function ask(provider) {
  return async (scene, session, prompt, model) => {
    session.messages ??= [];
    session.messages.push({ role: 'user', content: prompt });
    let failure;
    const result = streamText({
      model: provider(scene, model), messages: session.messages, tools, stopWhen: stepCountIs(20), maxRetries: 0,
      onError: ({ error }) => { failure = error; },
    });
    await result.consumeStream();
    if (failure) throw failure;
    session.messages.push(...await result.responseMessages);
    return result.text;
  };
}

const only = { tools: ['shell', 'shell'] };
describe('@ai-sdk/openai', () => agent({
  ...only, native: 'responses', next: 'messages-5.5', other: 'gemini', switched: 'gpt-other',
  ask: ask((scene, model) => createOpenAI({ baseURL: `${scene.url}/v1`, apiKey: key })(model ?? 'gpt-6-sol')),
}));
describe('@ai-sdk/openai-compatible', () => agent({
  ...only, native: 'thinking-chat', next: 'gemini', other: 'responses', switched: 'chat-other',
  ask: ask((scene, model) =>
    createOpenAICompatible({ name: 'gateway', baseURL: `${scene.url}/v1`, apiKey: key })(model ?? 'chat-1')),
}));
describe('@ai-sdk/anthropic', () => agent({
  ...only, native: 'messages-5.5', next: 'responses', other: 'gemini', switched: 'claude-other',
  ask: ask((scene, model) => createAnthropic({ baseURL: `${scene.url}/v1`, apiKey: key })(model ?? 'claude-opus-5-5')),
}));
describe('@ai-sdk/google', () => agent({
  ...only, native: 'gemini', next: 'responses', other: 'messages-5.5', switched: 'gemini-other',
  ask: ask((scene, model) =>
    createGoogleGenerativeAI({ baseURL: `${scene.url}/v1beta`, apiKey: key })(model ?? 'gemini-3.1-pro-preview')),
}));
