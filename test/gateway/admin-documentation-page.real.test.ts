import { mkdir } from 'node:fs/promises'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { startBrowser } from '../support/browser.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'

describeWith('chromium', 'the documentation page in a browser', () => {
  let gateway: TestGateway
  let browser: Browser
  const complaints: string[] = []
  const asked: string[] = []

  /** Allows the page of its own admin side to send requests. */
  let allowing: TestGateway

  const open = async (path: string, more: BrowserContextOptions = {}, of = gateway): Promise<Page> => {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...more })
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(`${of.adminAddress}${path}`, { waitUntil: 'networkidle' })
    return page
  }

  /** Opens the first operation of a group, and sends its request. */
  const tryFirst = async (page: Page): Promise<string> => {
    await page.locator('.opblock-tag').first().waitFor()
    if ((await page.locator('.opblock').count()) === 0) await page.locator('.opblock-tag').first().click()
    const first = page.locator('.opblock-get').first()
    await first.locator('.opblock-summary-control').click()
    await first.locator('.try-out__btn').click()
    await first.locator('.execute').click()
    const status = first.locator('.live-responses-table .response .response-col_status')
    await status.waitFor()
    return /^\d+/.exec((await status.textContent()) ?? '')?.[0] ?? ''
  }

  beforeAll(async () => {
    gateway = await startTestGateway({})
    browser = await startBrowser()
    const port = await freePort()
    allowing = await startTestGateway({
      admin: { port },
      cors: { origins: [`http://127.0.0.1:${port}`] },
      services: { plants: { contract: 'plants' } },
    })
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
    await allowing?.close()
  })

  test('shows operations with their arguments and, where it may send none, what to set, without an error, and requests only the admin side', async () => {
    const page = await open('/docs')
    await page.locator('.opblock-tag').first().waitFor()
    const groups = await page.locator('.opblock-tag').allTextContents()
    expect(groups.join(' ')).toContain('plants: plants')
    expect(groups.join(' ')).toContain('site: posts')
    await page.locator('.opblock-tag', { hasText: 'site: posts' }).first().click()
    const list = page.locator('.opblock-get', { hasText: 'List posts' }).first()
    await list.locator('.opblock-summary-control').click()
    await list.locator('tr[data-param-name="per_page"]').waitFor()
    expect(await list.textContent()).toContain('X-WP-TotalPages')
    expect(await page.locator('.authorize, .authorization__btn').count()).toBe(0)
    expect(await page.locator('#sending').textContent()).toBe(
      `To send requests from this page, add ${gateway.adminAddress} to cors.origins of the configuration.`,
    )
    expect(await page.locator('.try-out__btn').count()).toBe(0)
    const folder = process.env['TRELLIS_SCREENSHOTS']
    if (folder !== undefined) {
      await mkdir(folder, { recursive: true })
      await page.screenshot({ path: `${folder}/docs.png` })
    }
    expect(complaints).toEqual([])
    expect(asked.length).toBeGreaterThan(3)
    expect(asked.filter((url) => !url.startsWith(`${gateway.adminAddress}/`) && url !== 'data:,')).toEqual([])
    await page.close()
  })

  test('sends requests to services that allow its origin', async () => {
    const page = await open('/docs', {}, allowing)
    expect(await page.locator('#sending').isVisible()).toBe(false)
    expect(await tryFirst(page)).toBe('401')
    await page.close()
    // The status of the response is an error for the console.
    expect(complaints.splice(0).filter((text) => !text.includes('401'))).toEqual([])
  })

  test.each(rowsOf(['light', 'dark'] as const, 2))(
    'axe finds nothing, with a request that was sent: %s',
    async (colorScheme) => {
      for (const path of rowsOf(['/docs', '/docs?admin'], 2)) {
        // The policy of the page must not stop the test from looking: axe is put in from outside.
        const page = await open(path, { colorScheme, bypassCSP: true }, allowing)
        await tryFirst(page)
        await page.addScriptTag({ content: axe.source })
        const violations = await page.evaluate(async () => {
          const { axe: tool } = globalThis as unknown as {
            axe: {
              run(): Promise<{ violations: readonly { id: string; nodes: readonly { html: string }[] }[] }>
            }
          }
          return (await tool.run()).violations
        })
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
        expect([path, found]).toEqual([path, []])
        await page.close()
      }
      complaints.splice(0)
    },
  )

  test('the pages of operations lead back to the status page', async () => {
    const page = await open('/docs?admin')
    await page.getByRole('link', { name: 'Status page' }).click()
    await page.locator('#upstreams').waitFor({ state: 'attached' })
    expect(page.url()).toBe(`${gateway.adminAddress}/`)
    await page.close()
  })

  test('every link of the first page leads somewhere', async () => {
    const page = await open('/')
    const links = await page
      .locator('a')
      .evaluateAll((all) => all.map((link) => (link as { href?: string }).href ?? ''))
    expect(links.length).toBeGreaterThan(7)
    for (const link of links) expect([link, (await fetch(link)).status]).toEqual([link, 200])
    expect(complaints).toEqual([])
    await page.close()
  })
})
