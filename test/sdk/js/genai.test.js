import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ApiError, GoogleGenAI } from '@google/genai';
import { assertArguments, assertPerson, citySchema, collect, key, limited, model, personSchema, prompts, unknownModel, url, within, wrongKey } from './gateway.js';

const connect = (apiKey) => new GoogleGenAI({ apiKey, vertexai: false, httpOptions: { baseUrl: url } });
const ai = connect(key);
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'Weather of a city', parametersJsonSchema: citySchema }] }];

const rejectsWith = (status, promise) =>
  assert.rejects(promise, (e) => {
    assert.ok(e instanceof ApiError, String(e));
    assert.equal(e.status, status);
    return true;
  });

suite('genai: generateContent', () => {
  test('a whole reply', async () => {
    const reply = await ai.models.generateContent({ model, contents: prompts.plain });
    assert.ok(reply.text.length > 0);
    assert.equal(reply.candidates[0].finishReason, 'STOP');
    assert.ok(reply.usageMetadata.totalTokenCount > 0);
  });

  test('a stream', async () => {
    const chunks = await collect(await ai.models.generateContentStream({ model, contents: prompts.plain }));
    assert.ok(chunks.map((c) => c.text ?? '').join('').length > 0);
    assert.equal(chunks.filter((c) => c.candidates?.[0]?.finishReason).length, 1);
  });

  for (const stream of [false, true]) {
    test(`a tool's round trip, ${stream ? 'streamed' : 'whole'}`, async () => {
      const ask = async (contents) => {
        const body = { model, contents, config: { tools } };
        if (!stream) return (await ai.models.generateContent(body)).candidates[0];
        const candidates = (await collect(await ai.models.generateContentStream(body))).flatMap((c) => c.candidates ?? []);
        return {
          content: { role: 'model', parts: candidates.flatMap((c) => c.content?.parts ?? []) },
          finishReason: candidates.map((c) => c.finishReason).find(Boolean),
        };
      };
      const question = { role: 'user', parts: [{ text: prompts.tool }] };
      const first = await ask([question]);
      const calls = first.content.parts.flatMap((p) => p.functionCall ?? []);
      assert.equal(calls[0].name, 'get_weather');
      assertArguments(calls[0].args);
      const results = calls.map(({ id, name }) => ({ functionResponse: { ...(id && { id }), name, response: { output: 'rain' } } }));
      const second = await ask([question, first.content, { role: 'user', parts: results }]);
      assert.equal(second.finishReason, 'STOP');
      assert.ok(second.content.parts.map((p) => p.text ?? '').join('').length > 0);
    });
  }

  test('output that keeps a schema', async () => {
    const config = { responseMimeType: 'application/json', responseJsonSchema: personSchema };
    const reply = await ai.models.generateContent({ model, contents: prompts.schema, config });
    assertPerson(reply.text);
  });

  test('tokens are counted', async () => {
    const count = await ai.models.countTokens({ model, contents: prompts.plain });
    assert.ok(count.totalTokens > 0);
  });

  test('errors have the status of the reply', async () => {
    await rejectsWith(401, connect(wrongKey).models.generateContent({ model, contents: 'x' }));
    await rejectsWith(400, ai.models.generateContent({ model, contents: 'x', config: { temperature: 9 } }));
    await rejectsWith(404, ai.models.generateContent({ model: unknownModel, contents: 'x' }));
    await rejectsWith(429, ai.models.generateContent({ model: limited('generate-whole'), contents: prompts.rateLimit }));
    await rejectsWith(429, ai.models.generateContentStream({ model: limited('generate-streamed'), contents: prompts.rateLimit }));
  });

  test('a stream that fails in the middle throws', async () => {
    const stream = await ai.models.generateContentStream({ model, contents: prompts.midStream });
    await assert.rejects(collect(stream));
  });

  test('a stream can be abandoned', async () => {
    const abort = new AbortController();
    const stream = await ai.models.generateContentStream({ model, contents: prompts.long, config: { abortSignal: abort.signal } });
    const read = async () => {
      for await (const chunk of stream) {
        if (chunk.text) abort.abort();
      }
    };
    await assert.rejects(within(60_000, read()), /abort/i);
  });
});
