import { mkdir } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'

describeWith('chromium', 'the documentation page in a browser', () => {
  let gateway: TestGateway
  let browser: Browser
  const complaints: string[] = []
  const asked: string[] = []

  const open = async (path: string): Promise<Page> => {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } })
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(`${gateway.adminAddress}${path}`, { waitUntil: 'networkidle' })
    return page
  }

  beforeAll(async () => {
    gateway = await startTestGateway({})
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
  })

  test('shows operations with their arguments, without an error, and requests only the admin side', async () => {
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
