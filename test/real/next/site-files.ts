import { readFile } from 'node:fs/promises'
import { blocksOf } from '../../support/shown-commands.ts'

const document = await readFile(new URL('../../../docs/next.md', import.meta.url), 'utf8')
const [purgeRoute = '', useCacheModule = '', fetchModule = ''] = blocksOf(document, 'ts')
const [configuration = ''] = blocksOf(document, 'js')

/** Shows the title of a post, from the module of the page. `connection` makes it for each request; what is read is kept. */
const page = `import { Suspense } from 'react'
import { connection } from 'next/server'
import { read } from '../../read'
async function Title({ params }: { params: Promise<{ id: string }> }) {
  await connection()
  const { id } = await params
  const post = await read('/site/v2/posts/' + id)
  return <h1>{post.title}</h1>
}
export default function Page({ params }: { params: Promise<{ id: string }> }) {
  return <Suspense><Title params={params} /></Suspense>
}
`
/** Made by the build, of what the module of the page reads. */
const builtPage = (readFrom: string): string => `import { read } from '${readFrom}'
export default async function Page() {
  const post = await read('/site/v2/posts/4')
  return <h1>{post.title}</h1>
}
`
const layout = `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>
}
`

/**
 * The files of docs/next.md, and pages that show a post: /posts/ID, and post 4 on two pages of the build. `api`: where the paths of
 * WordPress's routes begin.
 */
export const siteFiles = (api: string, hasUseCache = true): Readonly<Record<string, string>> => {
  const fromGateway = (module: string): string => module.replace('http://127.0.0.1:8080/wp-json', api)
  return {
    'next.config.mjs': hasUseCache
      ? configuration
      : configuration.replace(/.*(cacheComponents|cacheHandlers).*\n/g, ''),
    'app/layout.tsx': layout,
    'app/posts/[id]/page.tsx': page,
    'app/api/purge/route.ts': purgeRoute,
    'app/front/page.tsx': builtPage(hasUseCache ? '../read' : '../fetched-read'),
    'app/fetched/page.tsx': builtPage('../fetched-read'),
    'app/read.ts': fromGateway(hasUseCache ? useCacheModule : fetchModule),
    'app/fetched-read.ts': fromGateway(fetchModule),
  }
}
