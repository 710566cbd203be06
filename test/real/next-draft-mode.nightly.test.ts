import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { NextSite, newestNext, secret } from './next/next-site.ts'
import { siteFiles } from './next/site-files.ts'

type Wire = Parameters<Script>[1]

const root = '/index.php/site-json'
/** Of an application password, as docs/previews.md has it made. */
const password = Buffer.from('editor:abcd efgh ijkl mnop').toString('base64')

/** Switches draft mode on and off; a real site asks for a token here. */
const draftRoute = (method: 'enable' | 'disable'): string => `import { draftMode } from 'next/headers'
import { NextResponse } from 'next/server'
export async function GET(request: Request) {
  const mode = await draftMode()
  mode.${method}()
  return NextResponse.redirect(new URL('/previewed', request.url))
}
`
/** Shows the draft, read as docs/previews.md shows, to who is in draft mode, and the published post to others. */
const previewedPage = (api: string): string => `import { Suspense } from 'react'
import { draftMode } from 'next/headers'
import { read } from '../read'
const draft = async () => {
  const response = await fetch('${api}/site/v2/posts/4/autosaves', {
    headers: { Authorization: \`Basic \${process.env.PREVIEW_PASSWORD}\` },
    cache: 'no-store',
  })
  const [newest] = await response.json()
  return newest
}
async function Title() {
  const { isEnabled } = await draftMode()
  const post = isEnabled ? await draft() : await read('/site/v2/posts/4')
  return <h1>{post.title}</h1>
}
export default function Page() {
  return <Suspense><Title /></Suspense>
}
`

describeWith('chromium', `draft mode of Next.js ${newestNext}, with an application password`, () => {
  let origin: Origin
  let gateway: TestGateway
  let site: NextSite
  let browser: Browser
  let address: string
  let [published, draft] = [0, 0]

  beforeAll(async () => {
    const port = await freePort()
    address = `http://127.0.0.1:${port}`
    const json = { 'Content-Type': 'application/json' }
    // As a plugin for caches in front of WordPress might send.
    const respond = (wire: Wire, content: object): void =>
      wire.respond({
        headers: { ...json, 'Cache-Control': 'public, max-age=600' },
        content: JSON.stringify(content),
      })
    const save: Script = (_, wire) => {
      draft += 1
      respond(wire, { id: 5, parent: 4, title: `draft ${draft}` })
    }
    const autosaves: Script = (_, wire) => respond(wire, [{ id: 5, parent: 4, title: `draft ${draft}` }])
    const post: Script = (_, wire) =>
      respond(wire, { id: 4, type: 'post', status: 'publish', title: `published ${published}` })
    const publish: Script = (request, wire, count) => {
      published = draft
      return post(request, wire, count)
    }
    origin = await startOrigin((request, wire, count) => {
      const { method, target, headers } = request
      const [read, written] = target.includes('autosaves') ? [autosaves, save] : [post, publish]
      const isForAll = method === 'GET' && read === post
      if (!isForAll && headers['authorization'] !== `Basic ${password}`)
        wire.respond({ status: 401, headers: json, content: '{}' })
      else return (method === 'POST' ? written : read)(request, wire, count)
    })
    gateway = await startTestGateway({
      services: {
        blog: siteService(origin.origin, {
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
          downstream: {
            tags: 'Surrogate-Key',
            settle: '20ms',
            receivers: [
              { type: 'next', url: `${address}/api/purge`, secret, onFailure: 'refuse', timeout: '10s' },
            ],
          },
        }),
      },
    })
    const api = gateway.publicAddress + root
    const files = {
      ...siteFiles(api),
      'app/api/draft/route.ts': draftRoute('enable'),
      'app/api/published/route.ts': draftRoute('disable'),
      'app/previewed/page.tsx': previewedPage(api),
    }
    site = await NextSite.install({ version: newestNext, files, checksTypes: false })
    await site.build()
    await site.start(port, '127.0.0.1', { PREVIEW_PASSWORD: password })
    browser = await startBrowser()
  }, 600_000)
  afterAll(async () => {
    await browser?.close()
    await site?.remove()
    await gateway?.close()
    await origin?.close()
  })

  const write = async (path: string, status: string): Promise<number> => {
    const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts/4${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Basic ${password}` },
      body: JSON.stringify({ title: 'x', status }),
    })
    await response.arrayBuffer()
    return response.status
  }
  const save = (): Promise<number> => write('/autosaves', 'draft')

  test('the editor sees the last save, readers the published post, on one page', async () => {
    // Until then the purge of everything with which Trellis began is not confirmed.
    await expect.poll(() => write('', 'publish')).toBe(200)
    const [editor, reader] = [await browser.newContext(), await browser.newContext()]
    const [preview, page] = [await editor.newPage(), await reader.newPage()]
    const titles = async (): Promise<readonly (string | null)[]> => {
      await Promise.all([preview.goto(`${address}/previewed`), page.goto(`${address}/previewed`)])
      return [await preview.textContent('h1'), await page.textContent('h1')]
    }
    await preview.goto(`${address}/api/draft`)
    for (let nth = 0; nth < 5; nth += 1) {
      expect(await save()).toBe(200)
      expect(await titles()).toEqual([`draft ${draft}`, `published ${published}`])
    }
    expect(await write('', 'publish')).toBe(200)
    expect(published).toBe(draft)
    expect(await save()).toBe(200)
    expect(await titles()).toEqual([`draft ${draft}`, `published ${published}`])
    // Out of draft mode the editor is a reader.
    await preview.goto(`${address}/api/published`)
    expect(await titles()).toEqual([`published ${published}`, `published ${published}`])
    // Neither Next.js nor Trellis has kept the draft for others.
    const anonymous = await fetch(`${gateway.publicAddress}${root}/site/v2/posts/4/autosaves`)
    expect(anonymous.status).toBe(401)
    await editor.close()
    await reader.close()
  })
})
