import { once } from 'node:events'
import { createServer } from 'node:http'

/** Posts in a list. */
const shown = 10

const post = (id: number): string =>
  JSON.stringify({
    id,
    type: 'post',
    slug: `plant-of-the-day-${id}`,
    title: { rendered: `Plant of the day ${id}` },
    excerpt: { rendered: '<p>Leaf, stem and root, and how they change in</p>' },
  })

/** As many lists of 2 kB as posts: list `n` shows posts `n` to `n + 9`. */
export const startListOrigin = async (): Promise<{ readonly origin: string; close(): void }> => {
  const server = createServer((request, response) => {
    const page = Number(/page=(\d+)/.exec(request.url ?? '')?.[1] ?? 1)
    const posts = Array.from({ length: shown }, (_, at) => post(page + at))
    const content = `[${posts.join(',')}]`.padEnd(2_000)
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': content.length,
      'X-Robots-Tag': 'noindex',
      'Access-Control-Expose-Headers': 'X-WP-Total, X-WP-TotalPages, Link',
      Allow: 'GET',
      'X-WP-Total': '100000000',
      'X-WP-TotalPages': '10000000',
    })
    response.end(content)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    origin: `http://127.0.0.1:${address.port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
