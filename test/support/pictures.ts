import { writeFile } from 'node:fs/promises'
import { argv, stdout } from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { checkCommandLine } from '../../bench/command-line.ts'
import { startBrowser } from './browser.ts'
import { firstTenMinutes } from './first-ten-minutes.ts'
import { startGatewayProcess } from './gateway-process.ts'

/**
 * Makes docs/pictures/: what a person sees in the first ten minutes, each picture with the structure of its page, and status.png, the
 * status page after some traffic. `-- --quick` leaves the traffic out.
 */
const folder = new URL('../../docs/pictures/', import.meta.url)
const picture = fileURLToPath(new URL('status.png', folder))
checkCommandLine('npm run picture -- [--quick]', { quick: { type: 'boolean' } })
const trafficMs = argv.includes('--quick') ? 0 : 90_000

const browser = await startBrowser()
for (const { name, outline, picture: image } of await firstTenMinutes(browser, true)) {
  await writeFile(new URL(`${name}.outline.txt`, folder), outline)
  if (image !== undefined) await writeFile(new URL(`${name}.png`, folder), image)
  stdout.write(`${name}\n`)
}
const gateway = await startGatewayProcess({ log: { level: 'error' } })
const site = `${gateway.origin}/index.php/site-json`
const credentials = { authorization: `Basic ${btoa('admin:trellis-demo')}` }
const json = { ...credentials, 'content-type': 'application/json' }

const send = async (url: string, init: RequestInit = {}): Promise<void> => {
  const response = await fetch(url, init)
  await response.arrayBuffer()
}

const reads = [
  '/site/v2/posts?per_page=5',
  '/site/v2/posts?per_page=5&page=2',
  '/site/v2/posts/1',
  '/site/v2/posts/2',
  '/site/v2/pages?_fields=id,title',
  '/site/v2/categories',
  '/site/v2/tags?per_page=3',
]

const round = async (number: number): Promise<void> => {
  for (const path of reads) await send(`${site}${path}`)
  if (number % 5 === 0)
    await send(`${gateway.origin}/plants?limit=3`, { headers: { authorization: 'Bearer demo' } })
  if (number % 20 === 0) await send(`${site}/site/v2/posts?per_page=1000`)
  if (number % 40 === 0) {
    const body = JSON.stringify({ slug: `post-${number}` })
    await send(`${site}/site/v2/posts/1`, { method: 'PUT', headers: json, body })
  }
  if (number % 60 === 0) {
    const requests = [1, 2, 3].map((id) => ({ path: `/site/v2/posts/${id}`, body: { slug: `batch-${id}` } }))
    await send(`${site}/batch/v1`, { method: 'POST', headers: json, body: JSON.stringify({ requests }) })
  }
}

try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 840 } })
  // The page measures rates from the moment it is opened.
  await page.goto(`${gateway.adminOrigin}/`)
  const end = performance.now() + trafficMs
  for (let number = 1; performance.now() < end; number += 1) {
    await round(number)
    await setTimeout(40)
  }
  if (trafficMs > 0) await page.screenshot({ path: picture })
  stdout.write(`${picture}\n`)
} finally {
  await browser.close()
  await gateway.stop()
}
