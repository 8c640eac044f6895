// Jobs that were never made, and a gateway's end of the page's lines that tells of
// them: for what a real gateway does too slowly or too seldom.

export const job = (n, more = {}) => ({
  id: `video_${String(n).padStart(12, '0')}`, object: 'video', model: 'video-2', status: 'queued', progress: 0, created_at: 1_790_000_000 + n, completed_at: null,
  expires_at: null, prompt: `job number ${n}: a paper boat in the rain`, size: '1280x720', seconds: '4', remixed_from_video_id: null, error: null, ...more,
});

// A Line plays the gateway of one page: its socket, and what is asked for.
export class Line {
  sockets = new Set();
  subscriptions = [];
  revision = 1;
  asked = [];

  constructor(jobs = []) { this.jobs = new Map(jobs.map((j) => [j.id, j])); }

  async install(page) {
    await page.routeWebSocket(/\/v1\/videos\/live$/, (socket) => {
      if (this.down) { socket.close({ code: 1001 }); return; }
      this.sockets.add(socket);
      socket.onClose(() => this.sockets.delete(socket));
      socket.onMessage((m) => this.subscribed(socket, JSON.parse(m)));
    });
    await page.route(/\/live\/(videos|receipts)/, (route) => {
      const request = route.request();
      this.asked.push({ method: request.method(), path: new URL(request.url()).pathname, headers: request.headers() });
      if (this.down) return route.abort();
      // The page asks for the list when a socket did not open, which may be after mend.
      if (request.url().endsWith('/videos?limit=1')) return route.fulfill({ json: { object: 'list', data: [], has_more: false } });
      return route.fulfill({ status: 404, json: { error: { message: 'there is none' } } });
    });
    return this;
  }

  subscribed(socket, m) {
    this.subscriptions.push(m);
    if (!m.after) for (const j of this.jobs.values()) this.send(socket, 'snapshot', j);
    else for (const j of this.missed ?? []) this.send(socket, 'job', j);
    this.missed = [];
    socket.send(JSON.stringify({ type: 'ready', revision: this.revision }));
  }

  send(socket, type, job) { socket.send(JSON.stringify({ type, revision: this.revision, job })); }

  // move sends a change to the watcher, or keeps it until one reconnects.
  move(n, more) {
    const j = { ...(this.jobs.get(job(n).id) ?? job(n)), ...more };
    this.jobs.set(j.id, j);
    this.revision++;
    if (this.sockets.size === 0) (this.missed ??= []).push(j);
    for (const s of this.sockets) this.send(s, 'job', j);
  }

  remove(n) {
    const { id } = job(n);
    this.jobs.delete(id);
    this.revision++;
    for (const s of this.sockets) this.send(s, 'deleted', { id, object: 'video.deleted', deleted: true });
  }

  // cut breaks the line, and keeps it broken until mend.
  cut() {
    this.down = true;
    for (const s of this.sockets) s.close({ code: 1001 });
    this.sockets.clear();
  }

  mend() { this.down = false; }
}
