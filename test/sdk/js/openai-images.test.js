import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { collect, key, url, within } from './gateway.js';

const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
const png = Buffer.from('89504e470d0a1a0a', 'hex');
const isPicture = (data) => data.subarray(0, 8).equals(png);
const prompt = 'A red fox in the snow [sandbox: pace=max]';

suite('openai: images', () => {
  test('pictures', async () => {
    const reply = await client.images.generate({ model: 'gpt-image-1', prompt, n: 2, size: '1024x1024', quality: 'low' });
    assert.equal(reply.data.length, 2);
    assert.ok(reply.data.every((d) => isPicture(Buffer.from(d.b64_json, 'base64'))));
    assert.equal(reply.size, '1024x1024');
    assert.equal(reply.usage.total_tokens, reply.usage.input_tokens + reply.usage.output_tokens);
    assert.ok(reply._request_id);
  });

  test('an address of the gateway', async () => {
    const reply = await client.images.generate({ model: 'dall-e-2', prompt, size: '256x256' });
    assert.ok(reply.data[0].url.startsWith(`${url}/`));
    const res = await fetch(reply.data[0].url);
    assert.equal(res.headers.get('content-type'), 'image/png');
    assert.ok(isPicture(Buffer.from(await res.arrayBuffer())));
  });

  test('a stream', async () => {
    const stream = await client.images.generate({ model: 'gpt-image-1', prompt, stream: true, partial_images: 2 });
    const events = await collect(stream);
    assert.deepEqual(events.map((e) => e.type), ['image_generation.partial_image', 'image_generation.partial_image', 'image_generation.completed']);
    assert.deepEqual(events.slice(0, 2).map((e) => e.partial_image_index), [0, 1]);
    assert.ok(events.every((e) => isPicture(Buffer.from(e.b64_json, 'base64'))));
    assert.ok(events[2].usage.total_tokens > 0);
  });

  test('an edit', async () => {
    const made = await client.images.generate({ model: 'gpt-image-1', prompt });
    const image = await toFile(Buffer.from(made.data[0].b64_json, 'base64'), 'fox.png', { type: 'image/png' });
    const reply = await client.images.edit({ model: 'gpt-image-1', image: [image, image], prompt: `${prompt} with a hat` });
    assert.ok(isPicture(Buffer.from(reply.data[0].b64_json, 'base64')));
  });

  test('an edit as a stream', async () => {
    const made = await client.images.generate({ model: 'gpt-image-1', prompt });
    const image = await toFile(Buffer.from(made.data[0].b64_json, 'base64'), 'fox.png', { type: 'image/png' });
    const events = await collect(await client.images.edit({ model: 'gpt-image-1', image, prompt, stream: true }));
    assert.equal(events.at(-1).type, 'image_edit.completed');
  });

  test('a rule that is broken', async () => {
    await assert.rejects(client.images.generate({ model: 'dall-e-2', prompt, size: '1536x1024' }), (err) => {
      assert.ok(err instanceof OpenAI.BadRequestError);
      assert.equal(err.param, 'size');
      return true;
    });
  });

  test('a prompt that is blocked', async () => {
    await assert.rejects(client.images.generate({ model: 'gpt-image-1', prompt: 'a fox [sandbox: block]' }), (err) => {
      assert.equal(err.status, 400);
      assert.equal(err.code, 'moderation_blocked');
      assert.equal(err.type, 'image_generation_user_error');
      return true;
    });
  });

  test('a client that leaves', async () => {
    const abort = new AbortController();
    const slow = client.images.generate({ model: 'gpt-image-1', prompt: 'a fox [sandbox: delay=20s]' }, { signal: abort.signal });
    setTimeout(() => abort.abort(), 50);
    await within(60_000, assert.rejects(slow, OpenAI.APIUserAbortError));
  });
});
