import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { packageFile } from '../package-file.ts'

/** No foreign content, nothing inline, no frames; `data:` for the icons inside Swagger UI's style sheet. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pageFields = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }
const html = 'text/html; charset=utf-8'

const documentationPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trellis: operations</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
`

// No "try it out": requests would go to the public side, which is another origin. No validator: it is a service on the Internet.
const startScript = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: -1,
  filter: true,
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [() => ({ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } })],
})
`

const scriptType = 'text/javascript; charset=utf-8'

const statusFile = (name: string) => (): string => packageFile(`public/status/${name}`).href

/** Resolved on first use: the page is optional. */
const assets: readonly (readonly [path: string, type: string, address: () => string])[] = [
  [
    '/docs/swagger-ui.css',
    'text/css; charset=utf-8',
    () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'),
  ],
  [
    '/docs/swagger-ui-bundle.js',
    scriptType,
    () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  ],
  ['/status/page.css', 'text/css; charset=utf-8', statusFile('page.css')],
  ...['page', 'actions', 'ask', 'draw', 'numbers'].map(
    (name) => [`/status/${name}.js`, scriptType, statusFile(`${name}.js`)] as const,
  ),
]

/** The pages for people: the status page and the documentation of all operations. */
export const addPages = (server: FastifyInstance): void => {
  server.get('/', async (_request, reply) => {
    const page = await readFile(packageFile('public/status/index.html'))
    return reply.headers(pageFields).type(html).send(page)
  })
  server.get('/docs', (_request, reply) => reply.headers(pageFields).type(html).send(documentationPage))
  server.get('/docs/start.js', (_request, reply) => reply.type(scriptType).send(startScript))
  for (const [path, type, address] of assets) {
    server.get(path, async (_request, reply) => {
      reply.type(type).header('cache-control', 'private, max-age=3600')
      return reply.send(await readFile(fileURLToPath(address())))
    })
  }
}
