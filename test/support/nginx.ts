import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'
import { startProcess, untilReady } from './processes.ts'

/** A real nginx that passes everything on to one upstream. */
export type Nginx = { readonly address: string; stop(): Promise<void> }

type NginxOptions = {
  /** Stores each 200 for this time, like a cache without invalidation, and sets `X-Cache`. Without it nothing is stored. */
  readonly keptFor?: string
  /** Compresses every content, at this level, and passes on the Host of the client. */
  readonly gzipLevel?: number
}

const cacheOf = (folder: string): string => `proxy_cache_path ${folder}/cache keys_zone=kept:8m;`

const cachingFor = (keptFor: string): string => `
      proxy_cache kept;
      proxy_cache_key $request_uri;
      proxy_cache_valid 200 ${keptFor};
      add_header X-Cache $upstream_cache_status;`

/** Starts nginx with `http`, the content of its http section; `isReady` rejects until it answers. */
export const runNginx = async (
  http: (folder: string) => string,
  isReady: () => Promise<unknown>,
): Promise<{ stop(): Promise<void> }> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-nginx-'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const file = join(folder, 'nginx.conf')
  await writeFile(
    file,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr crit; events { worker_connections 4096; }
     http { access_log off; ${temporary.join(' ')} ${http(folder)} }`,
  )
  const program = startProcess('nginx', ['-p', folder, '-e', 'stderr', '-c', file], {
    env: { PATH: `${process.env['PATH']}:/usr/sbin` },
  })
  await untilReady(program, isReady)
  return {
    stop: async () => {
      await program.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts nginx on a free port. */
export const startNginx = async (
  upstream: string,
  { keptFor, gzipLevel }: NginxOptions = {},
): Promise<Nginx> => {
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const { stop } = await runNginx(
    (folder) => `
      ${keptFor === undefined ? '' : cacheOf(folder)}
      ${gzipLevel === undefined ? '' : `gzip on; gzip_comp_level ${gzipLevel}; gzip_proxied any; gzip_types *; gzip_vary on;`}
      upstream target { server ${new URL(upstream).host}; keepalive 64; }
      server {
        listen 127.0.0.1:${port} backlog=4096;
        client_header_buffer_size 16k;
        large_client_header_buffers 4 16k;
        merge_slashes off;
        location / {
          proxy_pass http://target;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          ${gzipLevel === undefined ? '' : 'proxy_set_header Host $http_host;'}${keptFor === undefined ? '' : cachingFor(keptFor)}
        }
      }`,
    async () => (await fetch(address, { redirect: 'manual' })).text(),
  )
  return { address, stop }
}
