import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Peer } from '../peer.ts'
import { fileTargets, plainTargets } from './targets.ts'

/** Undefined when the program is there, else what installs it. */
function installed(program: string, debianPackage: string): string | undefined {
  const found = spawnSync('sh', ['-c', `PATH=$PATH:/usr/sbin command -v ${program}`])
  return found.status === 0 ? undefined : `apt-get install -y --no-install-recommends ${debianPackage}`
}

async function written(folder: string, name: string, lines: readonly string[]): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, `${lines.join('\n')}\n`)
  return file
}

/** nginx with proxy_cache on tmpfs-like speed (its files stay in the page cache), one worker, kept-alive upstream connections. */
export const nginx: Peer = {
  name: 'nginx',
  title: 'nginx proxy_cache',
  targets: { ...fileTargets, ...plainTargets },
  missing: () => installed('nginx', 'nginx-light'),
  async command({ port, originPort, folder }) {
    const store = join(folder, 'store')
    await mkdir(store, { recursive: true, mode: 0o777 })
    const file = await written(folder, 'nginx.conf', [
      'daemon off; worker_processes 1; master_process off;',
      `pid ${join(folder, 'nginx.pid')}; error_log ${join(folder, 'error.log')} crit;`,
      'events { worker_connections 1024; }',
      'http {',
      '  access_log off; keepalive_requests 100000000; client_body_buffer_size 128k; client_max_body_size 1m;',
      `  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/temp;`,
      `  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;`,
      `  proxy_cache_path ${store} levels=1:2 keys_zone=bench:100m max_size=2g inactive=1h use_temp_path=off;`,
      '  gzip on; gzip_types application/json; gzip_min_length 1024; gzip_http_version 1.0; gzip_proxied any;',
      `  upstream origin { server 127.0.0.1:${originPort}; keepalive 64; keepalive_requests 1000000; }`,
      `  server { listen 127.0.0.1:${port};`,
      '    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Accept-Encoding "";',
      '    location /files/ { proxy_pass http://origin; proxy_cache bench; proxy_cache_valid 200 1h;',
      '      proxy_cache_lock on; add_header X-Cache $upstream_cache_status; }',
      '    location / { proxy_pass http://origin; }',
      '  }',
      '}',
    ])
    return ['/usr/sbin/nginx', '-p', folder, '-c', file]
  },
  check: (scenario, { headers }) => {
    if (scenario === 'pass' || scenario === 'upload') return undefined
    const wanted = scenario === 'miss' ? 'MISS' : 'HIT'
    return headers['x-cache'] === wanted ? undefined : `X-Cache: ${headers['x-cache']}`
  },
}

/** Varnish with its store in memory. Its worker threads are bounded by the core that it is pinned to. */
export const varnish: Peer = {
  name: 'varnish',
  title: 'Varnish',
  targets: { ...fileTargets, ...plainTargets },
  missing: () => installed('varnishd', 'varnish'),
  async command({ port, originPort, folder }) {
    const file = await written(folder, 'bench.vcl', [
      'vcl 4.1;',
      `backend default { .host = "127.0.0.1"; .port = "${originPort}"; }`,
      'sub vcl_recv { if (req.url ~ "^/plain") { return (pass); } unset req.http.Cookie; }',
      'sub vcl_backend_response { set beresp.do_gzip = true; }',
      'sub vcl_deliver { if (obj.hits > 0) { set resp.http.X-Cache = "HIT"; } else { set resp.http.X-Cache = "MISS"; } }',
    ])
    const listen = ['-a', `127.0.0.1:${port}`, '-f', file, '-s', 'malloc,1g', '-n', join(folder, 'varnish')]
    return ['/usr/sbin/varnishd', '-F', ...listen, '-p', 'thread_pools=1', '-j', 'none']
  },
  check: nginx.check,
}

/** HAProxy with its small-object cache: one thread, objects up to 256 kB. */
export const haproxy: Peer = {
  name: 'haproxy',
  title: 'HAProxy cache',
  targets: {
    hit: fileTargets.hit,
    'hit-20k': fileTargets['hit-20k'],
    'hit-192k': fileTargets['hit-192k'],
    // Not its 304s: they carry a Content-Length, which wrk takes for that of a content.
    miss: fileTargets.miss,
    ...plainTargets,
  },
  missing: () => installed('haproxy', 'haproxy'),
  async command({ port, originPort, folder }) {
    const file = await written(folder, 'haproxy.cfg', [
      'global',
      '  nbthread 1',
      '  maxconn 2000',
      'defaults',
      '  mode http',
      '  timeout connect 5s',
      '  timeout client 60s',
      '  timeout server 60s',
      '  option http-keep-alive',
      'cache bench',
      '  total-max-size 1024',
      '  max-object-size 262144',
      '  max-age 3600',
      'frontend public',
      `  bind 127.0.0.1:${port}`,
      '  use_backend files if { path_beg /files/ }',
      '  default_backend plain',
      'backend files',
      '  http-request cache-use bench',
      '  http-response cache-store bench',
      `  server origin 127.0.0.1:${originPort}`,
      'backend plain',
      `  server origin 127.0.0.1:${originPort}`,
    ])
    return ['/usr/sbin/haproxy', '-db', '-f', file]
  },
  // What it stores holds the header too: age tells a hit.
  check: (scenario, { headers }) => {
    if (scenario === 'pass' || scenario === 'upload' || scenario === 'miss') return undefined
    return headers['age'] === undefined ? 'no Age: not from the cache' : undefined
  },
}
