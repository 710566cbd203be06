/** Text with what would drive a terminal replaced: some of what is printed comes from URLs and upstreams. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
  text.replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '?')
