// Colours by path and shade by subflow, for both themes.

import type { Lane } from "./data";
import { theme, type Theme } from "./store";

type Rgb = readonly [number, number, number];

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];
/** Towards white or black, by the number of a subflow on its path. */
const SHADES: readonly (readonly [Rgb, number])[] = [
  [WHITE, 0],
  [WHITE, 0.4],
  [BLACK, 0.35],
  [WHITE, 0.62],
  [BLACK, 0.55],
  [WHITE, 0.25],
  [BLACK, 0.2],
  [WHITE, 0.5],
];
const LIGHTER_IN_THE_DARK = 0.3;

let palette: Rgb[] = [BLACK];

export function usePalette(colours: readonly string[]): void {
  palette = colours.map((text) => {
    const value = Number.parseInt(text.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  });
}

function mixed(colour: Rgb, other: Rgb, part: number): Rgb {
  const at = (index: 0 | 1 | 2) => Math.round(colour[index] + (other[index] - colour[index]) * part);
  return [at(0), at(1), at(2)];
}

function css([red, green, blue]: Rgb): string {
  return `rgb(${red}, ${green}, ${blue})`;
}

export function pathColour(path: number, shade = 0): string {
  const base = palette[path % palette.length] ?? BLACK;
  const dark = theme.get() === "dark";
  const ground = dark ? mixed(base, WHITE, base === BLACK || base.every((part) => part === 0) ? 0.85 : LIGHTER_IN_THE_DARK) : base;
  const [towards, part] = SHADES[shade % SHADES.length] ?? [WHITE, 0];
  return css(mixed(ground, towards, part));
}

export function laneColour(lane: Lane): string {
  return pathColour(lane.path, lane.shade);
}

/** How much of a link is used: from pale over orange to dark red, or in the dark from dim to bright. */
const USE: Record<Theme, readonly Rgb[]> = {
  light: [
    [198, 205, 214],
    [240, 170, 60],
    [200, 70, 10],
    [140, 20, 20],
  ],
  dark: [
    [72, 82, 96],
    [160, 110, 40],
    [235, 140, 50],
    [255, 205, 140],
  ],
};

export function useColour(part: number): string {
  const scale = USE[theme.get()];
  const place = Math.min(Math.max(part, 0), 1) * (scale.length - 1);
  const below = Math.min(Math.floor(place), scale.length - 2);
  return css(mixed(scale[below] ?? BLACK, scale[below + 1] ?? BLACK, place - below));
}

/** A colour of the style sheet. */
export function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
