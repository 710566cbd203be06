import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'

/** Nothing from elsewhere, nothing inline, nothing to be framed; `data:` for the icons inside Swagger UI's style sheet. */
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

const views: readonly (readonly [path: string, text: string])[] = [
  ['docs', 'Operations of all services, to browse'],
  ['openapi.json', 'the same as OpenAPI 3.1'],
  ['metrics', 'Metrics for Prometheus'],
  ['livez', 'Is the process alive?'],
  ['readyz', 'Does it take requests, and if not, why?'],
  ['cache/entries?sort=size&limit=50', 'The largest stored responses'],
  ['cache/entries?sort=hits&limit=50', 'Those that answered most'],
  ['cache/entries?sort=age&limit=50', 'The oldest stored responses'],
  ['drift', 'How the upstream differs from the contract'],
  ['config', 'The configuration in force, without secrets'],
]

// Links are relative: the admin side may stand behind a path of something else.
const indexPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Trellis: admin side</title>
<link rel="icon" href="data:,">
<h1>Trellis: admin side</h1>
<ul>
${views.map(([path, text]) => `<li><a href="${path.replaceAll('&', '&amp;')}">/${path.split('?', 1)[0]}</a> ${text}</li>`).join('\n')}
<li>/explain?method=GET&amp;url=/plants What would become of a request</li>
<li>POST /cache/purge Drops stored responses</li>
<li>POST /reload Puts the configuration in force that the file holds now</li>
</ul>
`

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

// No trying out, and so nothing to log in for: requests would go to the public side, which is another origin. No validator: it would be asked on the Internet.
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

/** Resolved when asked for: whoever never opens the page does not need its files. */
const assets: readonly (readonly [path: string, type: string, address: () => string])[] = [
  [
    '/docs/swagger-ui.css',
    'text/css; charset=utf-8',
    () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'),
  ],
  [
    '/docs/swagger-ui-bundle.js',
    'text/javascript; charset=utf-8',
    () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  ],
]

/** The pages for people: what there is, and the documentation of all operations. */
export const addPages = (server: FastifyInstance): void => {
  server.get('/', (_request, reply) => reply.headers(pageFields).type(html).send(indexPage))
  server.get('/docs', (_request, reply) => reply.headers(pageFields).type(html).send(documentationPage))
  server.get('/docs/start.js', (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(startScript),
  )
  for (const [path, type, address] of assets) {
    server.get(path, async (_request, reply) => {
      reply.type(type).header('cache-control', 'private, max-age=3600')
      return reply.send(await readFile(fileURLToPath(address())))
    })
  }
}
