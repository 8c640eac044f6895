import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import OpenAI from 'openai';
import { GoogleGenAI } from '@google/genai';
import { key, unknownModel, url } from './gateway.js';

const model = 'vectors';
const openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
const google = new GoogleGenAI({ apiKey: key, vertexai: false, httpOptions: { baseUrl: url } });
const length = (v) => Math.sqrt(v.reduce((sum, f) => sum + f * f, 0));

suite('openai: embeddings', () => {
  // Without encoding_format the client asks for base64 and decodes it.
  test('base64 and numbers are the same vectors', async () => {
    const input = ['hello world', 'good bye'];
    const encoded = await openai.embeddings.create({ model, input, dimensions: 64 });
    const numbers = await openai.embeddings.create({ model, input, dimensions: 64, encoding_format: 'float' });
    assert.equal(encoded.data.length, 2);
    encoded.data.forEach((d, i) => {
      assert.equal(d.index, i);
      assert.equal(d.embedding.length, 64);
      assert.ok(Math.abs(length(d.embedding) - 1) < 1e-4);
      d.embedding.forEach((f, k) => assert.ok(Math.abs(f - numbers.data[i].embedding[k]) < 1e-6));
    });
    assert.equal(encoded.model, model);
    assert.ok(encoded.usage.prompt_tokens > 0);
    assert.equal(encoded.usage.total_tokens, encoded.usage.prompt_tokens);
  });

  test('a list of tokens', async () => {
    const reply = await openai.embeddings.create({ model, input: [15339, 1917] });
    assert.equal(reply.data.length, 1);
    assert.equal(reply.usage.prompt_tokens, 2);
  });

  test('more inputs than an upstream takes at a time', async () => {
    const input = Array.from({ length: 250 }, (_, i) => `text ${i}`);
    const reply = await openai.embeddings.create({ model, input, dimensions: 8 });
    assert.deepEqual(reply.data.map((d) => d.index), input.map((_, i) => i));
    const last = await openai.embeddings.create({ model, input: input[249], dimensions: 8 });
    assert.deepEqual(reply.data[249].embedding, last.data[0].embedding);
  });

  test('errors', async () => {
    await assert.rejects(openai.embeddings.create({ model, input: '' }), (e) => e.status === 400 && e.param === 'input');
    await assert.rejects(openai.embeddings.create({ model: unknownModel, input: 'a' }), (e) => e.status === 404);
  });
});

suite('genai: embeddings', () => {
  test('several contents', async () => {
    const reply = await google.models.embedContent({
      model, contents: ['hello world', 'good bye'], config: { outputDimensionality: 32, taskType: 'CLUSTERING' },
    });
    assert.equal(reply.embeddings.length, 2);
    for (const e of reply.embeddings) {
      assert.equal(e.values.length, 32);
      assert.ok(Math.abs(length(e.values) - 1) < 1e-4);
    }
  });
});
