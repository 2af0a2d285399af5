// VitePress's own theme, with a style for screenshots and wide tables.

import DefaultTheme from "vitepress/theme";
import "./style.css";

export default DefaultTheme;
