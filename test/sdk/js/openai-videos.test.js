import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { key, url } from './gateway.js';

const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
const prompt = 'A red fox in the snow [sandbox: job=1s]';
const params = { model: 'sora-2', prompt, seconds: '4', size: '1280x720' };
const fields = ['completed_at', 'created_at', 'error', 'expires_at', 'id', 'model', 'object', 'progress', 'prompt', 'remixed_from_video_id', 'seconds', 'size', 'status'];

suite('openai: videos', () => {
  test('the whole life of a video', async () => {
    const made = await client.videos.create(params);
    assert.equal(made.status, 'queued');
    let video = made;
    while (!['completed', 'failed'].includes(video.status)) video = await client.videos.retrieve(made.id, { query: { wait: '20s' } });
    assert.equal(video.status, 'completed');
    assert.deepEqual(Object.keys(video).filter((k) => k !== '_request_id').sort(), fields);
    const content = await client.videos.downloadContent(video.id);
    assert.equal(content.headers.get('content-type'), 'video/mp4');
    assert.equal(Buffer.from(await content.arrayBuffer()).subarray(4, 8).toString(), 'ftyp');
    const thumbnail = await client.videos.downloadContent(video.id, { variant: 'thumbnail' });
    assert.equal(thumbnail.headers.get('content-type'), 'image/webp');
    const remix = await client.videos.remix(video.id, { prompt });
    assert.equal(remix.remixed_from_video_id, video.id);
    await assert.rejects(client.videos.remix(remix.id, { prompt }), (e) => e.status === 400 && e.code === 'video_not_completed');
    const gone = await client.videos.delete(video.id);
    assert.deepEqual([gone.object, gone.deleted], ['video.deleted', true]);
    await assert.rejects(client.videos.retrieve(video.id), OpenAI.NotFoundError);
  });

  test('pages', async () => {
    const ids = [];
    for (let n = 0; n < 3; n++) ids.unshift((await client.videos.create(params)).id);
    const seen = [];
    for await (const video of client.videos.list({ limit: 2 })) seen.push(video.id);
    assert.deepEqual(seen.slice(0, 3), ids);
  });

  test('a refused picture', async () => {
    const picture = await toFile(Buffer.from('GIF89a'), 'fox.gif');
    await assert.rejects(client.videos.create({ ...params, input_reference: picture }), (e) => e.status === 400 && e.param === 'input_reference');
  });
});
