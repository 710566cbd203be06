import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { plugins } from '../real/sites/archives.ts'

const companion = await readFile('deploy/wordpress/trellis.php', 'utf8')
const page = await readFile('deploy/wordpress/README.md', 'utf8')

/** By folder: the version for which the companion knows the code of a plugin. */
const known = new Map(
  [...companion.matchAll(/^\t\t'([\w-]+)' +=> array\( '\w+_VERSION', '([\d.]+)' \),$/gm)].map(
    ([, folder = '', version = '']) => [folder, version],
  ),
)

test('code of a plugin is known for the version that the tests with real plugins run', () => {
  const tested = Object.values(plugins).map(([archive, file]) => {
    const [folder = ''] = file.split('/')
    return { folder, version: archive.slice(archive.search(/-\d/) + 1) }
  })
  expect(known.size).toBeGreaterThan(5)
  for (const [folder, version] of known)
    expect(tested.find((one) => one.folder === folder)?.version, folder).toMatch(
      new RegExp(`^${version.replaceAll('.', '\\.')}(?:[.-]|$)`),
    )
})

test('the page of the companion says which versions these are', () => {
  for (const version of known.values()) expect(page).toMatch(new RegExp(`[A-Z][A-Za-z ]+ ${version}\\b`))
})
